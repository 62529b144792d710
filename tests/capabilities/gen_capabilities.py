"""Writes the table of SPIR-V capabilities and what of Vulkan allows each, from vk.xml.

Usage: gen_capabilities.py VK_XML SPIRV_GRAMMAR GLSL_GRAMMAR REGISTRY_H RULES IMPLIED INSTRUCTIONS GLSL_INSTRUCTIONS
A row is a capability, its name, and a function that says whether a device with the given versions,
extensions, features and properties allows it ("SPIR-V Environment: Capabilities" of the specification is made from the
same elements). Capabilities that the grammar does not know are left out. REGISTRY_H is the driver's generated header, which knows the extensions and features there are. IMPLIED lists which capability declares which other with it,
INSTRUCTIONS what enables each instruction, GLSL_INSTRUCTIONS what GLSL.std.450 has.
"""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree

# Where the driver tells a property of a later version's structure in any version.
PROPERTY = {
    ("VkPhysicalDeviceVulkan11Properties", "subgroupSupportedOperations"): "p.subgroup.supportedOperations",
}


def extension_member(name, known):
    member = name.removeprefix("VK_")
    return f"api.device.{member}" if member in known else "false"


def version(name):
    major, minor = re.fullmatch(r"VK_VERSION_(\d)_(\d)", name).groups()
    return f"api.version >= VK_MAKE_API_VERSION(0, {major}, {minor}, 0)"


def requirement(text, known):
    """Any of the names, which commas separate."""
    parts = [version(name) if name.startswith("VK_VERSION") else extension_member(name, known)
             for name in text.split(",")]
    return "(" + " || ".join(parts) + ")"


def condition(element, known):
    if "version" in element.attrib:
        return version(element.get("version"))
    if "extension" in element.attrib:
        return extension_member(element.get("extension"), known)
    required = requirement(element.get("requires"), known) if element.get("requires") else "true"
    if "feature" in element.attrib:
        feature = element.get("feature")
        return f"({required} && features.{feature})" if feature in known else "false"
    key = element.get("property"), element.get("member")
    member = PROPERTY.get(key)
    if member is None:
        if key[0] != "VkPhysicalDeviceVulkan12Properties" or not key[1].startswith("shader"):
            return "false"
        member = f"p.floats.{key[1]}"
    value = element.get("value")
    return f"({required} && ({member} & {value}) != 0)"


def write_instructions(path, grammar, numbers):
    with open(path, "w", encoding="utf-8") as file:
        for entry in grammar["instructions"]:
            names = ", ".join(f'"{name}"' for name in [entry["opname"], *entry.get("aliases", [])])
            enabling = ", ".join(f"spv::Capability({numbers[name]})" for name in entry.get("capabilities", []))
            file.write(f'{{{entry["opcode"]}, {{{names}}}, {{{enabling}}}}},\n')


def main():
    vk_xml, grammar_path, glsl_path, registry_h, output, implied, instructions, glsl = sys.argv[1:9]
    with open(grammar_path, encoding="utf-8") as file:
        grammar = json.load(file)
    enumerants = next(k["enumerants"] for k in grammar["operand_kinds"] if k["kind"] == "Capability")
    numbers = {name: entry["value"] for entry in enumerants
               for name in [entry["enumerant"], *entry.get("aliases", [])]}
    with open(implied, "w", encoding="utf-8") as file:
        for entry in enumerants:
            for other in entry.get("capabilities", []):
                file.write(f'{{spv::Capability({entry["value"]}), spv::Capability({numbers[other]})}},\n')
    write_instructions(instructions, grammar, numbers)
    with open(glsl_path, encoding="utf-8") as file:
        write_instructions(glsl, json.load(file), numbers)
    with open(registry_h, encoding="utf-8") as file:
        known = set(re.findall(r"\bbool (\w+) = false;", file.read()))
    rows = []
    for capability in ElementTree.parse(vk_xml).getroot().iterfind("spirvcapabilities/spirvcapability"):
        conditions = [condition(element, known) for element in capability.iterfind("enable")]
        conditions = sorted({c for c in conditions if c != "false"}) or ["false"]
        if capability.get("name") in numbers:
            rows.append((numbers[capability.get("name")], capability.get("name"), " || ".join(conditions)))
    if len(rows) < 100:
        sys.exit("vk.xml lists too few capabilities; was it read right?")
    with open(output, "w", encoding="utf-8") as file:
        file.write("// Generated from vk.xml by gen_capabilities.py.\n")
        for number, name, text in rows:
            file.write(f'{{spv::Capability({number}), "{name}",\n'
                       " [](const ApiSet& api, const FeatureSet& features, const Properties& p) -> bool {\n"
                       "     (void)api, (void)features, (void)p;\n"
                       f"     return {text};\n }}}},\n")


if __name__ == "__main__":
    main()

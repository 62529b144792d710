"""Generates the driver's view of the Vulkan registry.

Usage: gen_vulkan.py VK_XML OUTPUT_DIR SOURCE...

Writes into OUTPUT_DIR:
  driver/registry.h, driver/registry.cpp  sets of extensions and features, and their tables
  driver/entry_points.h                   prototypes of the commands that the driver's sources define
  icd/entry_points.h                      prototypes of those that the sources of icd/ define
  icd/entry_point_table.cpp               every command: name, scope, requirement, function

The sources say what is implemented: a command is implemented where a source has
`FORNAX_ENTRY_POINT(type) vkName(`, and answered with an error where it has
`FORNAX_ABSENT_ENTRY_POINT(vkName)`. A source's folder is the namespace of what it defines. Nothing else
needs to be told when a command is added.
"""

import re
import sys
from pathlib import Path

from vk_registry import Registry

HEADER = "// Generated from vk.xml by tools/codegen/gen_vulkan.py. Do not edit.\n"


def scan_sources(paths: list[str], registry: Registry) -> tuple[dict[str, str], set[str]]:
    """The folder of each command that is defined, and the commands that are absent."""
    defined: dict[str, str] = {}
    absent: dict[str, str] = {}
    for path in paths:
        text = Path(path).read_text()
        found = [(m[1], defined) for m in re.finditer(r"FORNAX_ENTRY_POINT\([^)]*\)\s*(vk\w+)\(", text)]
        found += [(m[1], absent) for m in re.finditer(r"FORNAX_ABSENT_ENTRY_POINT\((vk\w+)\)", text)]
        for name, names in found:
            if name not in registry.commands:
                sys.exit(f"{path}: {name} is no command of the registry.")
            if registry.commands[name].implementation != name:
                sys.exit(f"{path}: {name} is an alias; define "
                         f"{registry.commands[name].implementation} instead.")
            if name in defined or name in absent:
                sys.exit(f"{path}: {name} is already defined in {defined.get(name) or absent[name]}.")
            names[name] = path
    return {name: Path(path).parent.name for name, path in defined.items()}, set(absent)


def registry_header(registry: Registry) -> str:
    lines = [HEADER, "#pragma once\n", "#include <span>\n", "#include <vulkan/vulkan_core.h>\n",
             "namespace fornax::driver {\n"]
    for kind in ("instance", "device"):
        lines.append(f"struct {kind.capitalize()}ExtensionSet {{")
        lines += [f"    bool {e.member} = false;" for e in registry.extensions if e.kind == kind]
        lines.append("};\n")
    features = list(dict.fromkeys(
        registry.features10 + [m for s in registry.feature_structs.values() for m in s.members]))
    lines.append("// Every feature of every structure; equal names of several structures are one feature.")
    lines.append("struct FeatureSet {")
    lines += [f"    bool {name} = false;" for name in features]
    lines.append("};\n")
    lines.append("""// What an instance or device has: the version it may use and its extensions.
struct ApiSet {
    uint32_t version = VK_API_VERSION_1_0;
    InstanceExtensionSet instance;
    DeviceExtensionSet device;
};

template <typename Set>
struct ExtensionInfo {
    const char* name;
    uint32_t spec_version;
    bool Set::*member;
    bool (*dependencies_met)(const ApiSet& api);
};
using InstanceExtensionInfo = ExtensionInfo<InstanceExtensionSet>;
using DeviceExtensionInfo = ExtensionInfo<DeviceExtensionSet>;

struct FeatureInfo {
    const char* name;
    bool FeatureSet::*member;
};

// One structure that extends VkPhysicalDeviceFeatures2: its VkBool32 members in order, after pNext.
struct FeatureStructInfo {
    VkStructureType s_type;
    const char* name;
    bool (*provided)(const ApiSet& api);
    std::span<const FeatureInfo> members;
};

// Where members of a VkPhysicalDeviceVulkan1xProperties come from: the structures that the version
// took over.
struct PropertyMember {
    uint32_t aggregate_offset;
    uint32_t source_offset;
    uint32_t size_bytes;
};
struct PropertySource {
    VkStructureType s_type;
    uint32_t size_bytes;
    std::span<const PropertyMember> members;
};
struct AggregateProperties {
    VkStructureType s_type;
    std::span<const PropertySource> sources;
};

// All extensions of the registry that need no platform, and surfaces of window systems, sorted by name.
std::span<const InstanceExtensionInfo> AllInstanceExtensions();
std::span<const DeviceExtensionInfo> AllDeviceExtensions();
// The members of VkPhysicalDeviceFeatures in order.
std::span<const FeatureInfo> Vulkan10Features();
// Sorted by s_type.
std::span<const FeatureStructInfo> AllFeatureStructs();
std::span<const AggregateProperties> AllAggregateProperties();

}  // namespace fornax::driver
""")
    return "\n".join(lines)


def aggregate_tables(registry: Registry) -> list[str]:
    lines = []
    aggregates = registry.aggregate_properties()
    for a in aggregates:
        sources = registry.property_sources(a)
        for name, members in sources.items():
            lines.append(f"constexpr PropertyMember k{a.name}_{name}[] = {{")
            lines += [f"    {{offsetof({a.name}, {to}), offsetof({name}, {source}),\n"
                      f"     sizeof({name}::{source})}}," for to, source in members]
            lines.append("};")
        lines.append(f"constexpr PropertySource k{a.name}[] = {{")
        lines += [f"    {{{registry.property_structs[name].s_type}, sizeof({name}),\n"
                  f"     k{a.name}_{name}}}," for name in sources]
        lines.append("};")
    lines.append("constexpr AggregateProperties kAggregateProperties[] = {")
    lines += [f"    {{{a.s_type}, k{a.name}}}," for a in aggregates]
    lines.append("};\n")
    return lines


def registry_source(registry: Registry) -> str:
    lines = [HEADER, '#include "driver/registry.h"\n', "namespace fornax::driver {", "namespace {\n"]
    for kind in ("Instance", "Device"):
        lines.append(f"constexpr {kind}ExtensionInfo k{kind}Extensions[] = {{")
        for e in registry.extensions:
            if e.kind != kind.lower():
                continue
            condition = registry.expression(e.depends) if e.depends else "true"
            parameter = "const ApiSet& api" if "api." in condition else "const ApiSet&"
            lines.append(f'    {{"{e.name}", {e.spec_version}, &{kind}ExtensionSet::{e.member},\n'
                         f"     []({parameter}) {{ return {condition}; }}}},")
        lines.append("};\n")
    lines.append("constexpr FeatureInfo kFeatures10[] = {")
    lines += [f'    {{"{name}", &FeatureSet::{name}}},' for name in registry.features10]
    lines.append("};\n")
    structs = list(registry.feature_structs.values())
    for s in structs:
        members = ",\n    ".join(f'{{"{m}", &FeatureSet::{m}}}' for m in s.members)
        lines.append(f"constexpr FeatureInfo k{s.name}[] = {{\n    {members}}};")
    lines.append("\nconstexpr FeatureStructInfo kFeatureStructsUnsorted[] = {")
    for s in structs:
        condition = " || ".join(s.requirements)
        parameter = "const ApiSet& api" if "api." in condition else "const ApiSet&"
        lines.append(f'    {{{s.s_type}, "{s.name}",\n'
                     f"     []({parameter}) {{ return {condition}; }}, k{s.name}}},")
    lines.append("};\n")
    lines += aggregate_tables(registry)
    lines.append("""constexpr auto kFeatureStructs = [] {
    auto sorted = std::to_array(kFeatureStructsUnsorted);
    std::ranges::sort(sorted, {}, &FeatureStructInfo::s_type);
    return sorted;
}();

}  // namespace

std::span<const InstanceExtensionInfo> AllInstanceExtensions() {
    return kInstanceExtensions;
}
std::span<const DeviceExtensionInfo> AllDeviceExtensions() {
    return kDeviceExtensions;
}
std::span<const FeatureInfo> Vulkan10Features() {
    return kFeatures10;
}
std::span<const FeatureStructInfo> AllFeatureStructs() {
    return kFeatureStructs;
}
std::span<const AggregateProperties> AllAggregateProperties() {
    return kAggregateProperties;
}

}  // namespace fornax::driver
""")
    text = "\n".join(lines)
    return text.replace('#include "driver/registry.h"\n',
                        '#include "driver/registry.h"\n\n#include <algorithm>\n#include <array>\n#include <cstddef>\n')


def entry_points_header(registry: Registry, folder: str, defined: dict[str, str]) -> str:
    lines = [HEADER, "#pragma once\n", "#include <vulkan/vulkan_core.h>\n",
             f"namespace fornax::{folder} {{\n"]
    for name in sorted(name for name in defined if defined[name] == folder):
        command = registry.commands[name]
        lines.append(f"VKAPI_ATTR {command.return_type} VKAPI_CALL {name}(")
        lines.append("    " + ",\n    ".join(command.parameters) + ");")
    lines.append(f"\n}}  // namespace fornax::{folder}\n")
    return "\n".join(lines)


def scope(command) -> str:
    if command.name in ("vkCreateInstance", "vkEnumerateInstanceVersion",
                        "vkEnumerateInstanceExtensionProperties",
                        "vkEnumerateInstanceLayerProperties"):
        return "kGlobal"
    return {"VkInstance": "kInstance", "VkPhysicalDevice": "kPhysicalDevice"}.get(
        command.first_parameter, "kDevice")


def entry_point_table(registry: Registry, defined: dict[str, str], absent: set[str]) -> str:
    conditions: dict[str, str] = {}
    rows = []
    for name in sorted(registry.commands):
        command = registry.commands[name]
        condition = "true" if "true" in command.requirements else " || ".join(command.requirements)
        requirement = conditions.setdefault(condition, f"Requirement{len(conditions)}")
        implementation = command.implementation
        if implementation in defined:
            function = f"Guard<&{defined[implementation]}::{implementation}>()"
        elif implementation in absent:
            function = f"Guard<&driver::AbsentEntryPoint<k_{implementation}, PFN_{implementation}>::Call>()"
        else:
            function = "nullptr"
        rows.append((name, scope(command), requirement, function, str(implementation in absent).lower()))
    lines = [HEADER, '#include "driver/absent.h"', '#include "driver/entry_points.h"',
             '#include "icd/entry_point.h"', '#include "icd/entry_points.h"', '#include "icd/guard.h"\n', "namespace fornax::icd {", "namespace {\n",
             "using driver::ApiSet;\n"]
    for condition, requirement in conditions.items():
        parameter = "const ApiSet& api" if "api." in condition else "const ApiSet&"
        lines.append(f"bool {requirement}({parameter}) {{\n    return {condition};\n}}")
    lines += [f'constexpr char k_{name}[] = "{name}";' for name in sorted(absent)]
    lines.append("\nconst EntryPoint kEntryPoints[] = {")
    lines += [f'    {{"{name}", Scope::{scope_}, {requirement},\n     {function}, {is_absent}}},'
              for name, scope_, requirement, function, is_absent in rows]
    lines.append("""};

}  // namespace

std::span<const EntryPoint> AllEntryPoints() {
    return kEntryPoints;
}

}  // namespace fornax::icd
""")
    return "\n".join(lines)


def write_if_changed(path: Path, text: str):
    """Leaves an unchanged file's time alone, so that only real changes rebuild the driver."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    vk_xml, output, *sources = sys.argv[1:]
    registry = Registry(vk_xml)
    defined, absent = scan_sources(sources, registry)
    directory = Path(output)
    write_if_changed(directory / "driver/registry.h", registry_header(registry))
    write_if_changed(directory / "driver/registry.cpp", registry_source(registry))
    for folder in ("driver", "icd"):
        write_if_changed(directory / folder / "entry_points.h", entry_points_header(registry, folder, defined))
    write_if_changed(directory / "icd/entry_point_table.cpp", entry_point_table(registry, defined, absent))


if __name__ == "__main__":
    main()

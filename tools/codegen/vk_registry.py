"""Reads vk.xml into the few facts that Fornax generates code from.

Only the Vulkan API (not Vulkan SC) and only what vulkan_core.h declares is kept: extensions of a
platform, and provisional ones, would need headers that the driver does not include. Surfaces of
window systems are kept by name, without their commands, which the loader has.
"""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field


@dataclass
class Extension:
    name: str  # VK_KHR_foo
    kind: str  # "instance" or "device"
    spec_version: int
    depends: str | None  # expression over extensions and versions

    @property
    def member(self) -> str:
        """The name without VK_, which is the member of the generated set."""
        return self.name.removeprefix("VK_")


@dataclass
class Command:
    name: str
    implementation: str  # the command that this one is an alias of, or itself
    first_parameter: str  # its type
    return_type: str
    parameters: list[str]  # C declarations
    requirements: list[str] = field(default_factory=list)  # C++ expressions, any of which is enough


@dataclass
class PropertyStruct:
    """A structure that extends VkPhysicalDeviceProperties2."""
    name: str
    s_type: str
    members: list[str]  # after pNext
    requirements: list[str] = field(default_factory=list)


@dataclass
class FeatureStruct:
    name: str
    s_type: str
    members: list[str]
    requirements: list[str] = field(default_factory=list)


_WINDOW_SYSTEM_SURFACES = ("VK_KHR_wayland_surface", "VK_KHR_xcb_surface", "VK_KHR_xlib_surface")


def _for_vulkan(element) -> bool:
    api = element.get("api")
    return api is None or "vulkan" in api.split(",")


def _is_aggregate(name: str) -> bool:
    return re.fullmatch(r"VkPhysicalDeviceVulkan\d\dProperties", name) is not None


def _text(element) -> str:
    return re.sub(r"\s+", " ", "".join(element.itertext())).strip()


class Registry:
    def __init__(self, path: str):
        self._root = ElementTree.parse(path).getroot()
        self.extensions = self._read_extensions(self._extension_elements())
        self._kinds = {e.name: e.kind for e in self.extensions}
        # Not in _kinds: what depends on a window system stays out.
        self.extensions += self._read_extensions(
            e for e in self._root.iterfind("extensions/extension") if e.get("name") in _WINDOW_SYSTEM_SURFACES)
        self.extensions.sort(key=lambda e: e.name)
        self.commands = self._read_commands()
        self.features10 = self._read_features10()
        self.feature_structs = self._read_feature_structs()
        self.property_structs = self._read_property_structs()
        self._read_requirements()
        # A command or structure without a requirement belongs to a platform or to Vulkan SC.
        self.commands = {n: c for n, c in self.commands.items() if c.requirements}
        self.feature_structs = {n: s for n, s in self.feature_structs.items() if s.requirements}

    def _extension_elements(self):
        for element in self._root.iterfind("extensions/extension"):
            if "vulkan" in element.get("supported", "").split(",") and not element.get("platform"):
                yield element

    @staticmethod
    def _read_extensions(elements) -> list[Extension]:
        extensions = []
        for element in elements:
            version = next(
                e.get("value") for e in element.iter("enum")
                if e.get("name", "").endswith("_SPEC_VERSION") and e.get("value"))
            extensions.append(Extension(
                element.get("name"), element.get("type"), int(version), element.get("depends")))
        return sorted(extensions, key=lambda e: e.name)

    def _read_commands(self) -> dict[str, Command]:
        commands = {}
        aliases = {}
        for element in self._root.iterfind("commands/command"):
            if not _for_vulkan(element):
                continue
            if element.get("alias"):
                aliases[element.get("name")] = element.get("alias")
                continue
            name = element.findtext("proto/name")
            parameters = [p for p in element.iterfind("param") if _for_vulkan(p)]
            commands[name] = Command(
                name, name, parameters[0].findtext("type"), element.findtext("proto/type"),
                [_text(p) for p in parameters])
        for name, target in aliases.items():
            original = commands[target]
            commands[name] = Command(
                name, original.implementation, original.first_parameter, original.return_type,
                original.parameters)
        return commands

    def _read_features10(self) -> list[str]:
        struct = self._root.find("types/type[@name='VkPhysicalDeviceFeatures']")
        return [m.findtext("name") for m in struct.iterfind("member")]

    def _read_feature_structs(self) -> dict[str, FeatureStruct]:
        """Structures of VkBool32 that extend VkPhysicalDeviceFeatures2."""
        structs = {}
        for element in self._root.iterfind("types/type[@category='struct']"):
            if "VkPhysicalDeviceFeatures2" not in element.get("structextends", "").split(","):
                continue
            members = [m for m in element.iterfind("member") if _for_vulkan(m)]
            s_type = members[0].get("values")
            flags = members[2:]
            if s_type is None or any(m.findtext("type") != "VkBool32" for m in flags):
                raise ValueError(f"{element.get('name')} is not a structure of features")
            name = element.get("name")
            structs[name] = FeatureStruct(name, s_type, [m.findtext("name") for m in flags])
        # Requirements may name a structure by its alias.
        self._struct_aliases = {
            e.get("name"): e.get("alias")
            for e in self._root.iterfind("types/type[@category='struct']") if e.get("alias")}
        return structs

    def _read_property_structs(self) -> dict[str, PropertyStruct]:
        structs = {}
        for element in self._root.iterfind("types/type[@category='struct']"):
            if "VkPhysicalDeviceProperties2" in element.get("structextends", "").split(","):
                members = [m for m in element.iterfind("member") if _for_vulkan(m)]
                name = element.get("name")
                structs[name] = PropertyStruct(
                    name, members[0].get("values"), [m.findtext("name") for m in members[2:]])
        return structs

    def property_sources(self, aggregate: PropertyStruct) -> dict[str, list[tuple[str, str]]]:
        """Where the members of VkPhysicalDeviceVulkan1xProperties come from.

        They are those of the structures that the version took over: by structure, pairs of the
        aggregate's member and the structure's. A member that came with the version is in none.
        """
        sources: dict[str, list[tuple[str, str]]] = {}
        candidates = [s for s in self.property_structs.values()
                      if not _is_aggregate(s.name) and
                      any(re.fullmatch(r"api\.version >= \w+", r) for r in s.requirements)]
        for member in aggregate.members:
            short = member.removeprefix("subgroup")
            names = {member, short[:1].lower() + short[1:]}  # subgroupSupportedStages
            found = [(s.name, name) for s in candidates for name in names if name in s.members]
            if len(found) > 1:
                raise ValueError(f"{aggregate.name}::{member} has several origins: {found}")
            if found:
                sources.setdefault(found[0][0], []).append((member, found[0][1]))
        return sources

    def aggregate_properties(self) -> list[PropertyStruct]:
        return [s for s in self.property_structs.values() if _is_aggregate(s.name)]

    def _read_requirements(self):
        for element in self._root.iterfind("feature"):
            if _for_vulkan(element):
                self._read_require_blocks(element, self.expression(element.get("name")))
        for element in self._extension_elements():
            self._read_require_blocks(element, self.expression(element.get("name")))

    def _read_require_blocks(self, element, condition: str):
        for block in element.iterfind("require"):
            if not _for_vulkan(block):
                continue
            requirement = condition
            # Khronos' tests want all commands of shader objects, whatever else is supported.
            if block.get("depends") and element.get("name") != "VK_EXT_shader_object":
                depends = self.expression(block.get("depends"))
                requirement = self._combine(condition, "&&", depends)
            if re.search(r"\bfalse\b", requirement):
                continue  # needs an extension of a platform
            for command in block.iterfind("command"):
                self._add(self.commands.get(command.get("name")), requirement)
            for type_ in block.iterfind("type"):
                name = type_.get("name")
                struct = self._struct_aliases.get(name, name)
                self._add(self.feature_structs.get(struct), requirement)
                self._add(self.property_structs.get(struct), requirement)

    @staticmethod
    def _add(entry, requirement: str):
        if entry is not None and requirement not in entry.requirements:
            entry.requirements.append(requirement)

    def expression(self, depends: str) -> str:
        """A `depends` attribute as a C++ expression over `const ApiSet& api`.

        The registry's operators are `,` (or) and `+` (and), of equal precedence, left to right.
        """
        tokens = re.findall(r"[()+,]|[\w:]+", depends)
        position = 0

        def parse_operand() -> str:
            nonlocal position
            token = tokens[position]
            position += 1
            if token == "(":
                inner = parse_chain()
                position += 1  # the closing parenthesis
                return f"({inner})"
            return self._atom(token)

        def parse_chain() -> str:
            nonlocal position
            left = parse_operand()
            while position < len(tokens) and tokens[position] in "+,":
                operator = "&&" if tokens[position] == "+" else "||"
                position += 1
                right = parse_operand()
                left = self._combine(left, operator, right)
            return left

        return parse_chain()

    @staticmethod
    def _combine(left: str, operator: str, right: str) -> str:
        absorbing, neutral = ("false", "true") if operator == "&&" else ("true", "false")
        if absorbing in (left, right):
            return absorbing
        if left == neutral:
            return right
        if right == neutral:
            return left
        return f"({left} {operator} {right})"

    def _atom(self, token: str) -> str:
        version = re.fullmatch(r"VK_(?:(?:BASE|COMPUTE|GRAPHICS)_)?VERSION_(\d)_(\d)", token)
        if version:
            if version.groups() == ("1", "0"):
                return "true"
            return f"api.version >= VK_API_VERSION_{version[1]}_{version[2]}"
        kind = self._kinds.get(token)
        if kind is None:
            # An extension of a platform, or a feature bit (Struct::member): not there.
            return "false"
        return f"api.{kind}.{token.removeprefix('VK_')}"

"""vulkaninfo has nothing odd to tell, and the device has what Khronos' roadmap profiles ask, but for graphics.

Usage: profile_test.py VULKANINFO PROFILES_JSON VK_XML

The profiles hold the required features and limits of Vulkan 1.0 to 1.4 (Feature Requirements, Required Limits) and of the
roadmaps 2022 to 2026 in a form that can be compared with what vulkaninfo writes. Structures that an older vulkaninfo does not
know are left out; the driver's own tests look at them.
"""

import json
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

VULKANINFO, PROFILES, VK_XML = sys.argv[1:4] if len(sys.argv) > 3 else ("", "", "")

# "All Vulkan graphics implementations must support": what only a graphics queue has a use for.
GRAPHICS = set("""
    multiview imagelessFramebuffer separateDepthStencilLayouts fullDrawIndexUint32 independentBlend sampleRateShading
    drawIndirectFirstInstance depthClamp depthBiasClamp occlusionQueryPrecise fragmentStoresAndAtomics largePoints wideLines
    multiDrawIndirect shaderDrawParameters pointSizeGranularity lineWidthGranularity maxColorAttachments vertexPipelineStoresAndAtomics
    maxFragmentCombinedOutputResources maxFragmentOutputAttachments maxPerStageDescriptorInputAttachments dualSrcBlend
    maxDescriptorSetInputAttachments maxVertexOutputComponents maxFragmentInputComponents viewportSubPixelBits
    maxTessellationControlPerVertexInputComponents maxTessellationControlPerVertexOutputComponents
    maxTessellationControlTotalOutputComponents maxTessellationEvaluationInputComponents subPixelInterpolationOffsetBits
    maxTessellationEvaluationOutputComponents maxGeometryOutputComponents maxViewports maxViewportDimensions
    viewportBoundsRange minInterpolationOffset maxInterpolationOffset subPixelPrecisionBits maxFramebufferWidth maxFramebufferHeight
    maxVertexInputAttributes maxVertexInputBindings maxClipDistances maxCullDistances
    rectangularLines bresenhamLines smoothLines stippledRectangularLines stippledBresenhamLines stippledSmoothLines
    vertexAttributeInstanceRateDivisor indexTypeUint8 dynamicRenderingLocalRead primitiveFragmentShadingRate pipelineFragmentShadingRate
    attachmentFragmentShadingRate depthClampZeroOne presentModeFifoLatestReady
    framebufferColorSampleCounts framebufferDepthSampleCounts framebufferStencilSampleCounts maxDrawIndirectCount
    fragmentShadingRateNonTrivialCombinerOps
    VK_KHR_load_store_op_none VK_KHR_line_rasterization VK_KHR_vertex_attribute_divisor VK_KHR_index_type_uint8
    VK_KHR_dynamic_rendering VK_KHR_dynamic_rendering_local_read VK_KHR_fragment_shading_rate VK_KHR_depth_clamp_zero_one
    pointSizeRange
    VK_KHR_surface VK_KHR_surface_maintenance1 VK_KHR_swapchain VK_KHR_swapchain_maintenance1 VK_KHR_get_surface_capabilities2
    VK_KHR_present_mode_fifo_latest_ready VK_KHR_present_id2 VK_KHR_present_wait2
""".split())

# What the device lacks for now. The list is exact: what is no longer lacking must go.
LACKING = set("""
    samplerAnisotropy samplerYcbcrConversion
""".split())


# Younger than the oldest vulkaninfo, which leaves them out.
YOUNG_FLAGS = {"VK_SUBGROUP_FEATURE_ROTATE_BIT", "VK_SUBGROUP_FEATURE_ROTATE_CLUSTERED_BIT"}


def limit_types(path):
    """{(structure, member): how a value is compared}, from vk.xml."""
    types = {}
    for struct in ElementTree.parse(path).getroot().iterfind("types/type[@category='struct']"):
        for member in struct.iterfind("member"):
            types[struct.get("name"), member.findtext("name")] = member.get("limittype", "exact")
    return types


def number(value):
    return int(value, 0) if isinstance(value, str) and re.fullmatch(r"0x[0-9a-fA-F]+|\d+", value) else value


def satisfies(kind, actual, wanted):
    if isinstance(wanted, list) and wanted and isinstance(wanted[0], str):
        # Names of flags, which vulkaninfo may write by another name of the same value.
        wanted = {flag.removesuffix("_KHR") for flag in wanted} - YOUNG_FLAGS
        return wanted <= {flag.removesuffix("_KHR") for flag in actual}
    if isinstance(wanted, list):
        return all(satisfies(kind, a, w) for a, w in zip(actual, wanted))
    actual, wanted = number(actual), number(wanted)
    if isinstance(wanted, bool):
        return actual == wanted or not wanted
    if "max" in kind or kind == "bits":
        return actual >= wanted
    if "min" in kind:
        return actual <= wanted
    return actual == wanted


def surpluses(listed, lacks):
    """A sentence for each name in a list that is not lacking, with the line of this file that holds it."""
    lines = Path(__file__).read_text().splitlines()
    return [f"{Path(__file__).name}:{number}: {name} is listed as lacking, but the device has it or no profile asks for it; "
            f"remove it."
            for number, line in enumerate(lines, 1) for name in line.split()
            if name in listed and name not in lacks]


class Profiles(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "info.json"
            cls.printed = subprocess.run([VULKANINFO, "--json", "-o", path], capture_output=True, text=True, timeout=120)
            cls.device = json.loads(path.read_text())["capabilities"]["device"]
        cls.capabilities = json.loads(Path(PROFILES).read_text())["capabilities"]
        cls.kinds = limit_types(VK_XML)

    def blocks(self):
        """Alternatives of one profile (…_line0 to 5) are all of graphics."""
        return {name: block for name, block in self.capabilities.items() if "_line" not in name and "optional" not in name
                and "dependent" not in name}

    def lacking(self):
        """{what is asked for and not there: which profile asks for it}."""
        lacks = {}
        for name, block in self.blocks().items():
            for extension in block.get("extensions", {}):
                if extension not in self.device["extensions"]:
                    lacks[extension] = name
            for struct, members in block.get("features", {}).items():
                for feature in members:
                    if struct in self.device["features"] and not self.device["features"][struct].get(feature, True):
                        lacks[feature] = name
            for struct, members in block.get("properties", {}).items():
                actual = self.device["properties"].get(struct)
                if actual is None:
                    continue
                kind_of = struct
                if struct == "VkPhysicalDeviceProperties":
                    members, actual, kind_of = members["limits"], actual["limits"], "VkPhysicalDeviceLimits"
                for member, wanted in members.items():
                    kind = self.kinds.get((kind_of, member), "exact")
                    if member in actual and not satisfies(kind, actual[member], wanted):
                        lacks[member] = f"{name} wants {wanted} and {actual[member]} is there"
        return lacks

    def test_everything_but_graphics_is_there(self):
        lacks = self.lacking()
        # The profile asks for subgroups of fragment shaders as well.
        lacks.pop("subgroupSupportedStages", None)
        self.assertEqual({name: why for name, why in lacks.items() if name not in GRAPHICS | LACKING}, {})

    def test_what_is_listed_as_lacking_is_lacking(self):
        self.assertEqual(surpluses(LACKING, self.lacking()), [])

    def test_a_surprise_pass_is_named(self):
        self.assertEqual(surpluses({"samplerAnisotropy"}, {"samplerAnisotropy": "a profile"}), [])
        (message,) = surpluses({"samplerAnisotropy"}, {})
        line = int(message.split(":")[1])
        self.assertIn("samplerAnisotropy", Path(__file__).read_text().splitlines()[line - 1])

    def test_the_comparison_compares(self):
        self.assertTrue(satisfies("max", 8192, 4096))
        self.assertFalse(satisfies("max", 2048, 4096))
        self.assertTrue(satisfies("min,pot", "0x10", 64))
        self.assertFalse(satisfies("min", 128, 64))
        self.assertFalse(satisfies("bitmask", ["A"], ["A", "B"]))
        self.assertFalse(satisfies("exact", False, True))

    def test_nothing_odd_is_printed(self):
        self.assertEqual(self.printed.returncode, 0)
        # What the loader says of another driver or of the machine's display is not about this one.
        self.assertNotRegex(self.printed.stdout + self.printed.stderr, r"(?i)fail|invalid[^\n]*device|incompat")
        text = subprocess.run([VULKANINFO], capture_output=True, text=True, timeout=120).stdout
        # Khronos has assigned no number to the driver, and an older vulkaninfo does not know younger flags.
        odd = [line.strip() for line in text.splitlines() if "UNKNOWN_" in line and "VkDriverId_value0" not in line]
        self.assertEqual(odd, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

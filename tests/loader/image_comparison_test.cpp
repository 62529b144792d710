// Comparisons with depths, against the reference of sampling.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include "tests/loader/image_fixture.h"
#include "tests/loader/sampling_reference.h"
#include "tests/loader/shaders/image_shadow.spv.h"

namespace fornax::test {
namespace {

// What the shader declares, in its order.
struct Dimension {
    VkImageViewType view;
    VkExtent3D extent;
    uint32_t layers;
};
const Dimension kDimensions[] = {{VK_IMAGE_VIEW_TYPE_2D, {23, 14, 1}, 1},
                                 {VK_IMAGE_VIEW_TYPE_2D_ARRAY, {8, 16, 1}, 4},
                                 {VK_IMAGE_VIEW_TYPE_CUBE, {12, 12, 1}, 6}};

using ImageComparisonTest = ImageTest;

// Depths are written by the host: a queue without graphics cannot copy them.
TEST_F(ImageComparisonTest, EveryOperatorAndDepth) {
    const double tolerance = std::getenv("FORNAX_TEST_DEVICE") ? 0.02 : 1e-5;
    for (VkFormat format : {VK_FORMAT_D16_UNORM, VK_FORMAT_D32_SFLOAT}) {
        SCOPED_TRACE(format);
        VkFormatProperties properties;
        vkGetPhysicalDeviceFormatProperties(physical_, format, &properties);
        if (!(properties.linearTilingFeatures & VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT)) {
            ASSERT_NE(std::getenv("FORNAX_TEST_DEVICE"), nullptr);
            continue;
        }
        struct Depth {
            TestImage image;
            ReferenceImage reference;
            VkImageView view;
        };
        std::vector<Depth> depths;
        for (const Dimension& dimension : kDimensions) {
            Depth& depth = depths.emplace_back();
            depth.reference = {.type = dimension.view,
                               .format = FindTexelReference(format),
                               .extent = dimension.extent,
                               .layers = dimension.layers,
                               .levels = {},
                               .components = {}};
            const bool cube = depth.reference.IsCube();
            depth.image = MakeImage(
                {.format = format,
                 .extent = dimension.extent,
                 .layers = dimension.layers,
                 .usage = VK_IMAGE_USAGE_SAMPLED_BIT,
                 .flags = cube ? VkImageCreateFlags{VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT} : 0,
                 .tiling = VK_IMAGE_TILING_LINEAR});
            const size_t texels = depth.image.LevelBytes(0) / depth.image.texel_bytes;
            std::vector<uint8_t> bytes(depth.image.LevelBytes(0));
            std::mt19937 random(5);
            for (size_t i = 0; i < texels; ++i) {
                // Few different depths, so that some are equal to the reference.
                const uint32_t step = random() % 9;
                const auto fixed = static_cast<uint16_t>(step * 65535 / 8);
                const float real = static_cast<float>(step) / 8;
                std::memcpy(
                    bytes.data() + i * depth.image.texel_bytes,
                    format == VK_FORMAT_D16_UNORM ? static_cast<const void*>(&fixed) : &real,
                    depth.image.texel_bytes);
            }
            WriteLinear(depth.image, bytes);
            depth.reference.levels = {bytes};
        }
        std::mt19937 random(9);
        TestBuffer in = MakeBuffer(64 * 4);
        for (uint32_t i = 0; i < 64; ++i) {
            for (uint32_t k = 0; k < 3; ++k) {
                in.floats()[i * 4 + k] = std::uniform_real_distribution<float>(-1, 2)(random);
            }
            in.floats()[i * 4 + 3] = static_cast<float>(random() % 11) / 8 - 0.125f;
        }
        // The result of a comparison is red, before the view's swizzle ("Component Swizzle").
        const VkComponentSwizzle reds[] = {VK_COMPONENT_SWIZZLE_IDENTITY, VK_COMPONENT_SWIZZLE_ONE,
                                           VK_COMPONENT_SWIZZLE_ZERO, VK_COMPONENT_SWIZZLE_A};
        constexpr uint32_t kOps = VK_COMPARE_OP_ALWAYS + 1;
        const size_t rounds = kOps + (std::getenv("FORNAX_TEST_DEVICE") ? 0 : std::size(reds) - 1);
        for (uint32_t round = 0; round < rounds; ++round) {
            const uint32_t op = round < kOps ? round : uint32_t{VK_COMPARE_OP_LESS};
            const VkComponentSwizzle red = reds[round < kOps ? 0 : round - kOps + 1];
            for (Depth& depth : depths) {
                depth.reference.components = {.r = red};
                depth.view = MakeView(depth.image, {.viewType = depth.reference.type,
                                                    .components = depth.reference.components});
            }
            const VkFilter filter = op % 2 ? VK_FILTER_LINEAR : VK_FILTER_NEAREST;
            const VkSamplerCreateInfo info{.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                                           .magFilter = filter,
                                           .minFilter = filter,
                                           .addressModeU = VK_SAMPLER_ADDRESS_MODE_REPEAT,
                                           .addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER,
                                           .compareEnable = VK_TRUE,
                                           .compareOp = static_cast<VkCompareOp>(op),
                                           .borderColor = VK_BORDER_COLOR_FLOAT_OPAQUE_WHITE};
            const VkSampler sampler = MakeSampler(info);
            TestBuffer out = MakeBuffer(64 * 16);
            Run(MakeImagePipeline(spirv::kImageShadow, {Slot::Combined(depths[0].view, sampler),
                                                        Slot::Combined(depths[1].view, sampler),
                                                        Slot::Combined(depths[2].view, sampler),
                                                        Slot::Buffer(in), Slot::Buffer(out)}),
                1);
            for (uint32_t i = 0; i < 64; ++i) {
                ReferenceQuery query;
                std::copy_n(in.floats() + i * 4, 3, query.position);
                query.reference = in.floats()[i * 4 + 3];
                if (format == VK_FORMAT_D16_UNORM) {
                    query.reference = std::clamp(*query.reference, 0.0, 1.0);
                }
                const std::optional<Vec4> expected[] = {
                    SampleReference(depths[0].reference, info, query),
                    SampleReference(depths[1].reference, info, query),
                    SampleReference(depths[2].reference, info, query),
                    GatherReference(depths[0].reference, info, query, 0)};
                for (uint32_t which = 0; which < 4; ++which) {
                    // Eighths are no numbers of 16 fixed bits, but for the ends.
                    const bool near = format == VK_FORMAT_D16_UNORM && *query.reference > 0 &&
                                      *query.reference < 1;
                    for (uint32_t k = 0; expected[which] && !near && k < (which == 3 ? 4 : 1);
                         ++k) {
                        ASSERT_NEAR(out.floats()[(4 * i + which) * 4 + k], (*expected[which])[k],
                                    tolerance)
                            << "comparison " << op << " query " << i << " kind " << which;
                    }
                }
            }
        }
    }
}

}  // namespace
}  // namespace fornax::test

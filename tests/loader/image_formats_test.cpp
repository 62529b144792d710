// Images of compressed formats, of depth and stencil, copied by the device and by the host; borders
// of any color; slices of 3D images as views.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "tests/loader/block_reference.h"
#include "tests/loader/image_fixture.h"
#include "tests/loader/shaders/image_borders.spv.h"
#include "tests/loader/shaders/image_fetch_float.spv.h"
#include "tests/loader/shaders/image_fetch_space.spv.h"
#include "tests/loader/shaders/image_fetch_space_sampled.spv.h"
#include "tests/loader/shaders/image_fetch_uint.spv.h"
#include "tests/loader/shaders/image_slices.spv.h"

namespace fornax::test {
namespace {

class ImageFormatsTest : public ImageTest {
  protected:
    void SetUp() override {
        core_features_.textureCompressionBC = VK_TRUE;
        core_features_.textureCompressionETC2 = VK_TRUE;
        more_extensions_ = {VK_EXT_HOST_IMAGE_COPY_EXTENSION_NAME,
                            VK_KHR_FORMAT_FEATURE_FLAGS_2_EXTENSION_NAME,
                            VK_EXT_CUSTOM_BORDER_COLOR_EXTENSION_NAME,
                            VK_EXT_BORDER_COLOR_SWIZZLE_EXTENSION_NAME,
                            VK_EXT_NON_SEAMLESS_CUBE_MAP_EXTENSION_NAME,
                            VK_EXT_IMAGE_2D_VIEW_OF_3D_EXTENSION_NAME,
                            VK_EXT_IMAGE_SLICED_VIEW_OF_3D_EXTENSION_NAME,
                            VK_KHR_MAINTENANCE_6_EXTENSION_NAME,
                            VK_KHR_MAINTENANCE_10_EXTENSION_NAME};
        more_features_ = &depths_;
        depths_.pNext = &host_copies_;
        ImageTest::SetUp();
    }

    // An image of two levels, and of three layers if there is one slice; `aspects` tells formats
    // that no texel reference describes.
    TestImage MakeRaw(VkFormat format,
                      VkExtent3D extent,
                      VkImageAspectFlags aspects,
                      VkImageCreateFlags flags = 0) {
        const bool is_3d = extent.depth > 1;
        TestImage image{.spec = {.type = is_3d ? VK_IMAGE_TYPE_3D : VK_IMAGE_TYPE_2D,
                                 .format = format,
                                 .extent = extent,
                                 .levels = 2,
                                 .layers = is_3d ? 1u : 3u},
                        .aspect = aspects};
        VkImageCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
            .flags = flags,
            .imageType = image.spec.type,
            .format = format,
            .extent = extent,
            .mipLevels = 2,
            .arrayLayers = image.spec.layers,
            .samples = VK_SAMPLE_COUNT_1_BIT,
            .usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT |
                     VK_IMAGE_USAGE_TRANSFER_DST_BIT | VK_IMAGE_USAGE_HOST_TRANSFER_BIT};
        CreateBound(info, image);
        const VkHostImageLayoutTransitionInfoEXT transition{
            .sType = VK_STRUCTURE_TYPE_HOST_IMAGE_LAYOUT_TRANSITION_INFO_EXT,
            .image = image.handle,
            .oldLayout = VK_IMAGE_LAYOUT_UNDEFINED,
            .newLayout = VK_IMAGE_LAYOUT_GENERAL,
            .subresourceRange = {aspects, 0, 2, 0, image.spec.layers}};
        EXPECT_VK(vkTransitionImageLayoutEXT(device_, 1, &transition));
        return image;
    }

    void HostUpload(const TestImage& image,
                    VkImageAspectFlags aspect,
                    uint32_t level,
                    const std::vector<uint8_t>& bytes) {
        const VkMemoryToImageCopyEXT region{
            .sType = VK_STRUCTURE_TYPE_MEMORY_TO_IMAGE_COPY_EXT,
            .pHostPointer = bytes.data(),
            .imageSubresource = {aspect, level, 0, image.spec.layers},
            .imageExtent = image.LevelExtent(level)};
        const VkCopyMemoryToImageInfoEXT info{
            .sType = VK_STRUCTURE_TYPE_COPY_MEMORY_TO_IMAGE_INFO_EXT,
            .dstImage = image.handle,
            .dstImageLayout = VK_IMAGE_LAYOUT_GENERAL,
            .regionCount = 1,
            .pRegions = &region};
        EXPECT_VK(vkCopyMemoryToImageEXT(device_, &info));
    }

    std::vector<uint8_t> HostDownload(const TestImage& image,
                                      VkImageAspectFlags aspect,
                                      uint32_t level,
                                      size_t size) {
        std::vector<uint8_t> bytes(size);
        const VkImageToMemoryCopyEXT region{
            .sType = VK_STRUCTURE_TYPE_IMAGE_TO_MEMORY_COPY_EXT,
            .pHostPointer = bytes.data(),
            .imageSubresource = {aspect, level, 0, image.spec.layers},
            .imageExtent = image.LevelExtent(level)};
        const VkCopyImageToMemoryInfoEXT info{
            .sType = VK_STRUCTURE_TYPE_COPY_IMAGE_TO_MEMORY_INFO_EXT,
            .srcImage = image.handle,
            .srcImageLayout = VK_IMAGE_LAYOUT_GENERAL,
            .regionCount = 1,
            .pRegions = &region};
        EXPECT_VK(vkCopyImageToMemoryEXT(device_, &info));
        return bytes;
    }

    // Every texel of a level as a shader sees it, four words each.
    std::vector<uint32_t> Fetch(const TestImage& image,
                                VkImageAspectFlags aspect,
                                uint32_t level,
                                std::span<const uint32_t> spirv) {
        const VkExtent3D extent = image.LevelExtent(level);
        const uint32_t slices = image.spec.layers * extent.depth;
        TestBuffer out = MakeBuffer(size_t{extent.width} * extent.height * slices * 4);
        const VkImageView view = MakeView(
            image, {.viewType = image.spec.type == VK_IMAGE_TYPE_3D ? VK_IMAGE_VIEW_TYPE_3D
                                                                    : VK_IMAGE_VIEW_TYPE_2D_ARRAY,
                    .subresourceRange = {aspect, 0, 2, 0, image.spec.layers}});
        const VkSampler sampler = MakeSampler({.maxLod = 1});
        const TestPipeline pipeline =
            MakeImagePipeline(spirv, {Slot::Combined(view, sampler), Slot::Buffer(out)});
        VkCommandBuffer commands = Begin();
        Bind(commands, pipeline);
        vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4, &level);
        vkCmdDispatch(commands, (extent.width + 7) / 8, (extent.height + 7) / 8, slices);
        Run(commands);
        return {out.words, out.words + out.size / 4};
    }

    VkPhysicalDeviceImageSlicedViewOf3DFeaturesEXT sliced_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_IMAGE_SLICED_VIEW_OF_3D_FEATURES_EXT,
        .imageSlicedViewOf3D = VK_TRUE};
    VkPhysicalDeviceImage2DViewOf3DFeaturesEXT planes_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_IMAGE_2D_VIEW_OF_3D_FEATURES_EXT,
        .pNext = &sliced_,
        .image2DViewOf3D = VK_TRUE,
        .sampler2DViewOf3D = VK_TRUE};
    VkPhysicalDeviceNonSeamlessCubeMapFeaturesEXT edges_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_NON_SEAMLESS_CUBE_MAP_FEATURES_EXT,
        .pNext = &planes_,
        .nonSeamlessCubeMap = VK_TRUE};
    VkPhysicalDeviceBorderColorSwizzleFeaturesEXT swizzles_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BORDER_COLOR_SWIZZLE_FEATURES_EXT,
        .pNext = &edges_,
        .borderColorSwizzle = VK_TRUE,
        .borderColorSwizzleFromImage = VK_TRUE};
    VkPhysicalDeviceCustomBorderColorFeaturesEXT borders_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_CUSTOM_BORDER_COLOR_FEATURES_EXT,
        .pNext = &swizzles_,
        .customBorderColors = VK_TRUE,
        .customBorderColorWithoutFormat = VK_TRUE};
    // Copies of depths on queues without graphics.
    VkPhysicalDeviceMaintenance10FeaturesKHR depths_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_10_FEATURES_KHR,
        .maintenance10 = VK_TRUE};
    VkPhysicalDeviceHostImageCopyFeaturesEXT host_copies_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_IMAGE_COPY_FEATURES_EXT,
        .pNext = &borders_,
        .hostImageCopy = VK_TRUE};
};

double Linear(double c) {
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

constexpr VkFormat kBlockFormats[] = {
    VK_FORMAT_ETC2_R8G8B8_UNORM_BLOCK,   VK_FORMAT_ETC2_R8G8B8_SRGB_BLOCK,
    VK_FORMAT_ETC2_R8G8B8A1_UNORM_BLOCK, VK_FORMAT_ETC2_R8G8B8A1_SRGB_BLOCK,
    VK_FORMAT_ETC2_R8G8B8A8_UNORM_BLOCK, VK_FORMAT_ETC2_R8G8B8A8_SRGB_BLOCK,
    VK_FORMAT_EAC_R11_UNORM_BLOCK,       VK_FORMAT_EAC_R11_SNORM_BLOCK,
    VK_FORMAT_EAC_R11G11_UNORM_BLOCK,    VK_FORMAT_EAC_R11G11_SNORM_BLOCK,
    VK_FORMAT_BC1_RGB_UNORM_BLOCK,       VK_FORMAT_BC1_RGB_SRGB_BLOCK,
    VK_FORMAT_BC1_RGBA_UNORM_BLOCK,      VK_FORMAT_BC1_RGBA_SRGB_BLOCK,
    VK_FORMAT_BC2_UNORM_BLOCK,           VK_FORMAT_BC2_SRGB_BLOCK,
    VK_FORMAT_BC3_UNORM_BLOCK,           VK_FORMAT_BC3_SRGB_BLOCK,
    VK_FORMAT_BC4_UNORM_BLOCK,           VK_FORMAT_BC4_SNORM_BLOCK,
    VK_FORMAT_BC5_UNORM_BLOCK,           VK_FORMAT_BC5_SNORM_BLOCK,
    VK_FORMAT_BC6H_UFLOAT_BLOCK,         VK_FORMAT_BC6H_SFLOAT_BLOCK,
    VK_FORMAT_BC7_UNORM_BLOCK,           VK_FORMAT_BC7_SRGB_BLOCK};
constexpr VkFormat kSrgbBlocks[] = {
    VK_FORMAT_ETC2_R8G8B8_SRGB_BLOCK,   VK_FORMAT_ETC2_R8G8B8A1_SRGB_BLOCK,
    VK_FORMAT_ETC2_R8G8B8A8_SRGB_BLOCK, VK_FORMAT_BC1_RGB_SRGB_BLOCK,
    VK_FORMAT_BC1_RGBA_SRGB_BLOCK,      VK_FORMAT_BC2_SRGB_BLOCK,
    VK_FORMAT_BC3_SRGB_BLOCK,           VK_FORMAT_BC7_SRGB_BLOCK};

// Noise holds blocks of every mode. Both levels go to the image, and `spirv` reads them.
class CompressedFormatsTest : public ImageFormatsTest {
  protected:
    void CheckTexels(VkFormat format,
                     const VkExtent3D& base_extent,
                     std::span<const uint32_t> spirv);
};

void CompressedFormatsTest::CheckTexels(VkFormat format,
                                        const VkExtent3D& base_extent,
                                        std::span<const uint32_t> spirv) {
    const bool is_srgb = std::ranges::count(kSrgbBlocks, format) == 1;
    const TestImage image = MakeRaw(format, base_extent, VK_IMAGE_ASPECT_COLOR_BIT);
    for (uint32_t level = 0; level < 2; ++level) {
        const VkExtent3D extent = image.LevelExtent(level);
        const uint32_t slices = image.spec.layers * extent.depth;
        const uint32_t columns = (extent.width + 3) / 4;
        const uint32_t rows = (extent.height + 3) / 4;
        const size_t size = size_t{columns} * rows * slices * BlockBytes(format);
        auto blocks = Noise(size, static_cast<uint32_t>(format) + level);
        // The modes of BPTC are not equally frequent in noise.
        for (size_t i = 0; i < size / 16; ++i) {
            uint8_t& mode = blocks[i * 16];
            if (format == VK_FORMAT_BC7_UNORM_BLOCK) {
                mode = static_cast<uint8_t>((mode << 1 | 1) << i % 9);
            } else if (format == VK_FORMAT_BC6H_UFLOAT_BLOCK ||
                       format == VK_FORMAT_BC6H_SFLOAT_BLOCK) {
                mode = static_cast<uint8_t>((mode & ~31u) | i % 32);
            }
        }
        // By the device, from where the host reads it again.
        TestBuffer buffer = MakeBuffer(size / 4);
        std::memcpy(buffer.words, blocks.data(), size);
        VkCommandBuffer commands = Begin();
        const VkBufferImageCopy region{
            .bufferOffset = buffer.offset,
            .imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, level, 0, image.spec.layers},
            .imageExtent = extent};
        vkCmdCopyBufferToImage(commands, buffer.handle, image.handle, VK_IMAGE_LAYOUT_GENERAL, 1,
                               &region);
        Run(commands);
        EXPECT_TRUE(HostDownload(image, VK_IMAGE_ASPECT_COLOR_BIT, level, size) == blocks);
        const auto texels = Fetch(image, VK_IMAGE_ASPECT_COLOR_BIT, level, spirv);
        for (uint32_t i = 0; i < texels.size() / 4; ++i) {
            const uint32_t x = i % extent.width;
            const uint32_t y = i / extent.width % extent.height;
            const uint32_t z = i / extent.width / extent.height;
            const size_t block = (size_t{z} * rows + y / 4) * columns + x / 4;
            auto wanted =
                DecodeBlock(format, blocks.data() + block * BlockBytes(format), x % 4, y % 4);
            for (size_t k = 0; k < 4; ++k) {
                if (is_srgb && k < 3) {
                    wanted[k] = Linear(wanted[k]);
                }
                const double seen = std::bit_cast<float>(texels[i * 4 + k]);
                // The least of BC6 is an infinity.
                ASSERT_TRUE(seen == wanted[k] || std::abs(seen - wanted[k]) <= 1e-6)
                    << seen << " for " << wanted[k] << ", texel " << x << ", " << y << ", " << z
                    << " component " << k;
            }
        }
    }
}

TEST_F(CompressedFormatsTest, Layers) {
    for (VkFormat format : kBlockFormats) {
        SCOPED_TRACE(format);
        CheckTexels(format, {53, 30, 1}, spirv::kImageFetchFloat);
        if (HasFatalFailure()) {
            return;
        }
    }
}

TEST_F(CompressedFormatsTest, Slices) {
    for (VkFormat format : kBlockFormats) {
        SCOPED_TRACE(format);
        CheckTexels(format, {21, 14, 5}, spirv::kImageFetchSpace);
        CheckTexels(format, {18, 13, 4}, spirv::kImageFetchSpaceSampled);
        if (HasFatalFailure()) {
            return;
        }
    }
}

// Blocks as texels of another format: a copy between images, and a view.
TEST_F(ImageFormatsTest, BlocksAreTexelsOfOtherFormats) {
    const auto make = [this] {
        return MakeRaw(
            VK_FORMAT_ETC2_R8G8B8_UNORM_BLOCK, {24, 16, 1}, VK_IMAGE_ASPECT_COLOR_BIT,
            VK_IMAGE_CREATE_MUTABLE_FORMAT_BIT | VK_IMAGE_CREATE_BLOCK_TEXEL_VIEW_COMPATIBLE_BIT);
    };
    const TestImage image = make();
    const TestImage twin = make();
    const auto blocks = Noise(size_t{6} * 4 * 3 * 8, 3);
    HostUpload(image, VK_IMAGE_ASPECT_COLOR_BIT, 0, blocks);
    const TestImage words = MakeRaw(VK_FORMAT_R32G32_UINT, {6, 4, 1}, VK_IMAGE_ASPECT_COLOR_BIT);
    VkImageCopy2 region{.sType = VK_STRUCTURE_TYPE_IMAGE_COPY_2,
                        .srcSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 3},
                        .srcOffset = {4, 8, 0},
                        .dstSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 3},
                        .dstOffset = {1, 2, 0},
                        .extent = {20, 8, 1}};
    for (bool by_host : {false, true}) {
        // Images that the host copies between are made alike; the same words are the result.
        const TestImage& to = by_host ? twin : words;
        HostUpload(to, VK_IMAGE_ASPECT_COLOR_BIT, 0, std::vector<uint8_t>(blocks.size(), 7));
        if (by_host) {
            region.dstOffset = region.srcOffset;
            const VkCopyImageToImageInfoEXT info{
                .sType = VK_STRUCTURE_TYPE_COPY_IMAGE_TO_IMAGE_INFO_EXT,
                .srcImage = image.handle,
                .srcImageLayout = VK_IMAGE_LAYOUT_GENERAL,
                .dstImage = to.handle,
                .dstImageLayout = VK_IMAGE_LAYOUT_GENERAL,
                .regionCount = 1,
                .pRegions = &region};
            ASSERT_VK(vkCopyImageToImageEXT(device_, &info));
        } else {
            const VkCopyImageInfo2 info{.sType = VK_STRUCTURE_TYPE_COPY_IMAGE_INFO_2,
                                        .srcImage = image.handle,
                                        .srcImageLayout = VK_IMAGE_LAYOUT_GENERAL,
                                        .dstImage = words.handle,
                                        .dstImageLayout = VK_IMAGE_LAYOUT_GENERAL,
                                        .regionCount = 1,
                                        .pRegions = &region};
            VkCommandBuffer commands = Begin();
            vkCmdCopyImage2KHR(commands, &info);
            Run(commands);
        }
        auto expected = std::vector<uint8_t>(blocks.size(), 7);
        for (size_t z = 0; z < 3; ++z) {
            for (size_t y = 2; y < 4; ++y) {
                std::memcpy(expected.data() + ((z * 4 + y) * 6 + 1) * 8,
                            blocks.data() + ((z * 4 + y) * 6 + 1) * 8, 5 * 8);
            }
        }
        EXPECT_TRUE(HostDownload(to, VK_IMAGE_ASPECT_COLOR_BIT, 0, expected.size()) == expected);
    }
    // Two layers at once (blockTexelViewCompatibleMultipleLayers).
    TestBuffer out = MakeBuffer(2 * 6 * 4 * 4);
    const VkImageView view =
        MakeView(image, {.viewType = VK_IMAGE_VIEW_TYPE_2D_ARRAY,
                         .format = VK_FORMAT_R32G32_UINT,
                         .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 1, 2}});
    const TestPipeline pipeline = MakeImagePipeline(
        spirv::kImageFetchUint, {Slot::Combined(view, MakeSampler({})), Slot::Buffer(out)});
    VkCommandBuffer commands = Begin();
    Bind(commands, pipeline);
    const uint32_t level = 0;
    vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4, &level);
    vkCmdDispatch(commands, 1, 1, 2);
    Run(commands);
    for (size_t i = 0; i < 48; ++i) {
        EXPECT_EQ(std::memcmp(out.words + i * 4, blocks.data() + (24 + i) * 8, 8), 0) << i;
    }
}

TEST_F(ImageFormatsTest, DepthAndStencilAreApart) {
    constexpr VkImageAspectFlags kDepth = VK_IMAGE_ASPECT_DEPTH_BIT;
    constexpr VkImageAspectFlags kStencil = VK_IMAGE_ASPECT_STENCIL_BIT;
    struct Case {
        VkFormat format;
        uint32_t depth_bytes;
        uint32_t depth_bits;
    };
    for (const Case& c :
         {Case{VK_FORMAT_D16_UNORM_S8_UINT, 2, 16}, Case{VK_FORMAT_D24_UNORM_S8_UINT, 4, 24},
          Case{VK_FORMAT_D32_SFLOAT_S8_UINT, 4, 32}}) {
        SCOPED_TRACE(c.format);
        const TestImage image = MakeRaw(c.format, {13, 9, 1}, kDepth | kStencil);
        const TestImage copy = MakeRaw(c.format, {13, 9, 1}, kDepth | kStencil);
        for (uint32_t level = 0; level < 2; ++level) {
            const VkExtent3D extent = image.LevelExtent(level);
            const size_t texels = size_t{extent.width} * extent.height * 3;
            auto depths = Noise(texels * c.depth_bytes, 1 + level);
            for (size_t i = 0; i < texels && c.depth_bits == 32; ++i) {
                const float value = static_cast<float>(depths[i * 4]) / 256;
                std::memcpy(depths.data() + i * 4, &value, 4);
            }
            const auto stencils = Noise(texels, 3 + level);
            HostUpload(image, kDepth, level, depths);
            HostUpload(image, kStencil, level, stencils);
            const VkImageCopy2 region{.sType = VK_STRUCTURE_TYPE_IMAGE_COPY_2,
                                      .srcSubresource = {kDepth | kStencil, level, 0, 3},
                                      .dstSubresource = {kDepth | kStencil, level, 0, 3},
                                      .extent = extent};
            const VkCopyImageToImageInfoEXT info{
                .sType = VK_STRUCTURE_TYPE_COPY_IMAGE_TO_IMAGE_INFO_EXT,
                .srcImage = image.handle,
                .srcImageLayout = VK_IMAGE_LAYOUT_GENERAL,
                .dstImage = copy.handle,
                .dstImageLayout = VK_IMAGE_LAYOUT_GENERAL,
                .regionCount = 1,
                .pRegions = &region};
            ASSERT_VK(vkCopyImageToImageEXT(device_, &info));
            EXPECT_TRUE(HostDownload(copy, kStencil, level, texels) == stencils);
            const auto seen_depths = Fetch(copy, kDepth, level, spirv::kImageFetchFloat);
            const auto seen_stencils = Fetch(copy, kStencil, level, spirv::kImageFetchUint);
            for (size_t i = 0; i < texels; ++i) {
                uint32_t raw = 0;
                std::memcpy(&raw, depths.data() + i * c.depth_bytes, c.depth_bytes);
                const double wanted = c.depth_bits == 32 ? std::bit_cast<float>(raw)
                                                         : (raw & ((1u << c.depth_bits) - 1)) /
                                                               (std::exp2(c.depth_bits) - 1);
                ASSERT_NEAR(std::bit_cast<float>(seen_depths[i * 4]), wanted, 1e-7) << i;
                ASSERT_EQ(seen_stencils[i * 4], stencils[i]) << i;
            }
        }
    }
}

// The eight bits above depths of 24 are undefined in buffers, and do not become part of images: of
// equal depths all bytes are equal.
TEST_F(ImageFormatsTest, UndefinedBitsStayOutOfDepths) {
    const TestImage image = MakeImage({.format = VK_FORMAT_X8_D24_UNORM_PACK32,
                                       .extent = {7, 5, 1},
                                       .layers = 2,
                                       .usage = VK_IMAGE_USAGE_SAMPLED_BIT,
                                       .tiling = VK_IMAGE_TILING_LINEAR});
    void* bytes = nullptr;
    ASSERT_VK(vkMapMemory(device_, image.memory, 0, VK_WHOLE_SIZE, 0, &bytes));
    VkMemoryRequirements needs;
    vkGetImageMemoryRequirements(device_, image.handle, &needs);
    auto* begin = static_cast<uint8_t*>(bytes) + needs.alignment;
    const std::vector<uint8_t> before(begin, begin + needs.size);
    EXPECT_EQ(before, std::vector<uint8_t>(needs.size, 0));
    std::vector<uint8_t> depths = Noise(image.LevelBytes(0), 3);
    Upload(image, depths);
    const std::vector<uint8_t> first(begin, begin + needs.size);
    for (size_t i = 3; i < depths.size(); i += 4) {
        depths[i] = static_cast<uint8_t>(~depths[i]);
    }
    Upload(image, depths);
    EXPECT_TRUE(std::vector<uint8_t>(begin, begin + needs.size) == first);
    for (size_t i = 3; i < depths.size(); i += 4) {
        depths[i] = 0;
    }
    EXPECT_TRUE(Download(image) == depths);
}

// What is asked of layouts and sizes for the host.
TEST_F(ImageFormatsTest, HostCopiesSayWhatTheyCan) {
    VkPhysicalDeviceHostImageCopyPropertiesEXT properties{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_IMAGE_COPY_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 all{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                    .pNext = &properties};
    vkGetPhysicalDeviceProperties2(physical_, &all);
    std::vector<VkImageLayout> layouts(properties.copyDstLayoutCount);
    std::vector<VkImageLayout> few(1);
    properties.pCopyDstLayouts = layouts.data();
    properties.pCopySrcLayouts = few.data();
    properties.copySrcLayoutCount = 1;
    vkGetPhysicalDeviceProperties2(physical_, &all);
    for (const VkImageLayout layout :
         {VK_IMAGE_LAYOUT_GENERAL, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL,
          VK_IMAGE_LAYOUT_STENCIL_ATTACHMENT_OPTIMAL, VK_IMAGE_LAYOUT_ATTACHMENT_OPTIMAL}) {
        EXPECT_EQ(std::ranges::count(layouts, layout), 1) << layout;
    }
    EXPECT_EQ(properties.copySrcLayoutCount, 1u);
    EXPECT_TRUE(properties.identicalMemoryTypeRequirements);

    const TestImage image =
        MakeRaw(VK_FORMAT_EAC_R11G11_UNORM_BLOCK, {21, 6, 1}, VK_IMAGE_ASPECT_COLOR_BIT);
    VkSubresourceHostMemcpySizeEXT size{.sType =
                                            VK_STRUCTURE_TYPE_SUBRESOURCE_HOST_MEMCPY_SIZE_EXT};
    VkSubresourceLayout2EXT layout{.sType = VK_STRUCTURE_TYPE_SUBRESOURCE_LAYOUT_2_EXT,
                                   .pNext = &size};
    const VkImageSubresource2EXT subresource{.sType = VK_STRUCTURE_TYPE_IMAGE_SUBRESOURCE_2_EXT,
                                             .imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 1, 2}};
    vkGetImageSubresourceLayout2EXT(device_, image.handle, &subresource, &layout);
    EXPECT_EQ(size.size, 3u * 1 * 16);  // 10 x 3 texels
}

TEST_F(ImageFormatsTest, BordersOfAnyColor) {
    const TestImage plane = MakeImage({.format = VK_FORMAT_B8G8R8A8_UNORM,
                                       .extent = {4, 4, 1},
                                       .usage = VK_IMAGE_USAGE_SAMPLED_BIT});
    const TestImage cube = MakeImage({.format = VK_FORMAT_R8G8B8A8_UNORM,
                                      .extent = {2, 2, 1},
                                      .layers = 6,
                                      .usage = VK_IMAGE_USAGE_SAMPLED_BIT,
                                      .flags = VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT});
    Upload(plane, std::vector<uint8_t>(plane.LevelBytes(0), 255));
    Upload(cube, std::vector<uint8_t>(cube.LevelBytes(0), 255));
    const VkSamplerCustomBorderColorCreateInfoEXT custom{
        .sType = VK_STRUCTURE_TYPE_SAMPLER_CUSTOM_BORDER_COLOR_CREATE_INFO_EXT,
        .customBorderColor = {.float32 = {0.125f, 0.25f, 0.5f, 0.75f}}};
    VkSamplerCreateInfo info{.pNext = &custom,
                             .magFilter = VK_FILTER_LINEAR,
                             .minFilter = VK_FILTER_LINEAR,
                             .addressModeU = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER,
                             .addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER,
                             .addressModeW = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER,
                             .borderColor = VK_BORDER_COLOR_FLOAT_CUSTOM_EXT};
    const VkSampler seamless = MakeSampler(info);
    info.flags = VK_SAMPLER_CREATE_NON_SEAMLESS_CUBE_MAP_BIT_EXT;
    const VkSampler edged = MakeSampler(info);
    const VkComponentMapping mapping{VK_COMPONENT_SWIZZLE_A, VK_COMPONENT_SWIZZLE_R,
                                     VK_COMPONENT_SWIZZLE_G, VK_COMPONENT_SWIZZLE_B};
    const VkImageView plain_view = MakeView(plane, VK_IMAGE_VIEW_TYPE_2D);
    const VkImageView mapped_view =
        MakeView(plane, {.viewType = VK_IMAGE_VIEW_TYPE_2D, .components = mapping});
    const VkImageView cube_view = MakeView(cube, VK_IMAGE_VIEW_TYPE_CUBE);
    for (bool mapped : {false, true}) {
        SCOPED_TRACE(mapped);
        TestBuffer in = MakeBuffer(64 * 4);
        TestBuffer out = MakeBuffer(64 * 8);
        // Far outside; on an edge of the plane; on an edge of a face; in the middle of all.
        const float places[4][4] = {
            {3, 3, 0.2f, 0}, {0, 0.5f, 0.5f, 0}, {1, 0, 1, 0}, {0.5f, 0.5f, 5, 0}};
        std::memcpy(in.words, places, sizeof(places));
        Run(MakeImagePipeline(spirv::kImageBorders,
                              {Slot::Combined(mapped ? mapped_view : plain_view, seamless),
                               Slot::Combined(cube_view, mapped ? edged : seamless),
                               Slot::Buffer(in), Slot::Buffer(out)}),
            1);
        const auto expect = [&](size_t at, const std::array<float, 4>& wanted) {
            for (size_t i = 0; i < 4; ++i) {
                EXPECT_NEAR(out.floats()[at * 4 + i], wanted[i], 1e-6) << at << ", " << i;
            }
        };
        const std::array<float, 4> border = mapped ? std::array{0.75f, 0.125f, 0.25f, 0.5f}
                                                   : std::array{0.125f, 0.25f, 0.5f, 0.75f};
        expect(0, border);
        std::array<float, 4> half{};
        for (size_t i = 0; i < 4; ++i) {
            half[i] = (border[i] + 1) / 2;
        }
        expect(2, half);
        expect(6, {1, 1, 1, 1});
        // Faces of cubes have neighbours instead of borders, but for those with edges.
        if (mapped) {
            expect(5, {0.5625f, 0.625f, 0.75f, 0.875f});
        } else {
            expect(5, {1, 1, 1, 1});
        }
    }
}

TEST_F(ImageFormatsTest, ViewsOfSlices) {
    const TestImage image =
        MakeImage({.type = VK_IMAGE_TYPE_3D,
                   .format = VK_FORMAT_R32_UINT,
                   .extent = {5, 4, 7},
                   .usage = VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_SAMPLED_BIT,
                   .flags = VK_IMAGE_CREATE_2D_VIEW_COMPATIBLE_BIT_EXT});
    std::vector<uint8_t> bytes(image.LevelBytes(0));
    for (uint32_t i = 0; i < bytes.size() / 4; ++i) {
        std::memcpy(bytes.data() + i * 4, &i, 4);
    }
    Upload(image, bytes);
    const VkImageViewSlicedCreateInfoEXT part{
        .sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_SLICED_CREATE_INFO_EXT,
        .sliceOffset = 2,
        .sliceCount = 3};
    const VkImageView slices =
        MakeView(image, {.pNext = &part,
                         .viewType = VK_IMAGE_VIEW_TYPE_3D,
                         .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}});
    const auto plane = [&](uint32_t slice) {
        return MakeView(image, {.viewType = VK_IMAGE_VIEW_TYPE_2D,
                                .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, slice, 1}});
    };
    TestBuffer out = MakeBuffer(10);
    const VkSampler sampler = MakeSampler({});
    Run(MakeImagePipeline(
            spirv::kImageSlices,
            {Slot::Storage(slices), Slot::Storage(plane(6)), Slot::Combined(plane(1), sampler),
             Slot::Buffer(out), Slot::Combined(slices, sampler)}),
        1);
    // Only storage sees slices.
    const std::array<uint32_t, 10> expected = {
        5, 4, 3, 120 + 5 + 2, 20 + 15 + 1, 40 + 10 + 3, 60 + 10 + 3, 80 + 10 + 3, 7, 20 + 10 + 3};
    EXPECT_TRUE(std::ranges::equal(out.span(), expected));
    const auto after = Download(image);
    for (uint32_t i = 0; i < bytes.size() / 4; ++i) {
        uint32_t word = 0;
        std::memcpy(&word, after.data() + i * 4, 4);
        ASSERT_EQ(word, i == 80 ? 1234 : i);
    }
}

}  // namespace
}  // namespace fornax::test

// Images whose flags and usages are told in 64 bits (VK_KHR_extended_flags), views of one layer
// with and without layers (VK_KHR_maintenance11).

#include "tests/loader/image_fixture.h"
#include "tests/loader/shaders/image_fetch_uint.spv.h"
#include "tests/loader/shaders/image_texels_uint.spv.h"

namespace fornax::test {
namespace {

class ImageFlagsTest : public ImageTest {
  protected:
    void SetUp() override {
        api_version_ = VK_API_VERSION_1_3;
        core_features_.shaderStorageImageReadWithoutFormat = VK_TRUE;
        core_features_.shaderStorageImageWriteWithoutFormat = VK_TRUE;
        more_extensions_ = {VK_KHR_EXTENDED_FLAGS_EXTENSION_NAME,
                            VK_KHR_MAINTENANCE_11_EXTENSION_NAME};
        more_features_ = &flags_;
        ImageTest::SetUp();
    }

    // What the query says of a 2D image whose older members say nothing that is true.
    VkResult Query(VkFormat format,
                   VkImageCreateFlags2KHR flags,
                   VkImageUsageFlags2KHR usage,
                   VkImageUsageFlags2KHR stencil_usage) {
        VkImageStencilUsage2CreateInfoKHR stencil_info{
            .sType = VK_STRUCTURE_TYPE_IMAGE_STENCIL_USAGE_2_CREATE_INFO_KHR,
            .stencilUsage = stencil_usage};
        VkImageUsageFlags2CreateInfoKHR usage_info{
            .sType = VK_STRUCTURE_TYPE_IMAGE_USAGE_FLAGS_2_CREATE_INFO_KHR,
            .pNext = stencil_usage ? &stencil_info : nullptr,
            .usage = usage};
        const VkImageCreateFlags2CreateInfoKHR flags_info{
            .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_FLAGS_2_CREATE_INFO_KHR,
            .pNext = &usage_info,
            .flags = flags};
        const VkPhysicalDeviceImageFormatInfo2 info{
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_IMAGE_FORMAT_INFO_2,
            .pNext = &flags_info,
            .format = format,
            .type = VK_IMAGE_TYPE_2D,
            .tiling = VK_IMAGE_TILING_OPTIMAL,
            .usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT,
            .flags = VK_IMAGE_CREATE_SPARSE_BINDING_BIT};
        VkImageFormatProperties2 properties{.sType = VK_STRUCTURE_TYPE_IMAGE_FORMAT_PROPERTIES_2};
        return vkGetPhysicalDeviceImageFormatProperties2(physical_, &info, &properties);
    }

    VkPhysicalDeviceMaintenance11FeaturesKHR maintenance_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_11_FEATURES_KHR,
        .maintenance11 = VK_TRUE};
    VkPhysicalDeviceExtendedFlagsFeaturesKHR flags_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTENDED_FLAGS_FEATURES_KHR,
        .pNext = &maintenance_,
        .extendedFlags = VK_TRUE};
};

TEST_F(ImageFlagsTest, TheLongerFlagsCount) {
    constexpr VkFormat kColors = VK_FORMAT_R8G8B8A8_UNORM;
    constexpr VkFormat kBoth = VK_FORMAT_D24_UNORM_S8_UINT;
    constexpr VkImageUsageFlags2KHR kSampled = VK_IMAGE_USAGE_2_SAMPLED_BIT_KHR;
    constexpr VkImageCreateFlags2KHR kPlain = VK_IMAGE_CREATE_2_MUTABLE_FORMAT_BIT_KHR;
    EXPECT_EQ(Query(kColors, kPlain, kSampled, 0), VK_SUCCESS);
    EXPECT_NE(Query(kColors, VK_IMAGE_CREATE_2_SPARSE_BINDING_BIT_KHR, kSampled, 0), VK_SUCCESS);
    EXPECT_NE(Query(kColors, uint64_t{1} << 40, kSampled, 0), VK_SUCCESS);
    EXPECT_NE(Query(kColors, kPlain, kSampled | uint64_t{1} << 40, 0), VK_SUCCESS);
    EXPECT_NE(Query(kColors, kPlain, VK_IMAGE_USAGE_2_COLOR_ATTACHMENT_BIT_KHR, 0), VK_SUCCESS);
    EXPECT_EQ(Query(kBoth, kPlain, kSampled, VK_IMAGE_USAGE_2_TRANSFER_SRC_BIT_KHR), VK_SUCCESS);
    EXPECT_NE(Query(kBoth, kPlain, kSampled, VK_IMAGE_USAGE_2_STORAGE_BIT_KHR), VK_SUCCESS);
    // "Initially, no new format flag bits are defined."
    VkFormatProperties4KHR more{.sType = VK_STRUCTURE_TYPE_FORMAT_PROPERTIES_4_KHR,
                                .linearTilingFeatures = 1,
                                .optimalTilingFeatures = 2,
                                .bufferFeatures = 3};
    VkFormatProperties2 properties{.sType = VK_STRUCTURE_TYPE_FORMAT_PROPERTIES_2, .pNext = &more};
    vkGetPhysicalDeviceFormatProperties2(physical_, kColors, &properties);
    EXPECT_EQ(more.linearTilingFeatures | more.optimalTilingFeatures | more.bufferFeatures, 0u);
}

// A shader without layers writes through a view of an array, one with layers reads a plain view.
// The image is made with the longer flags alone.
TEST_F(ImageFlagsTest, OneLayerIsAnArrayAndAPlane) {
    constexpr VkExtent3D kExtent{24, 8, 1};
    TestImage image{.spec = {.format = VK_FORMAT_R32_UINT, .extent = kExtent, .layers = 4}};
    VkImageUsageFlags2CreateInfoKHR usage{
        .sType = VK_STRUCTURE_TYPE_IMAGE_USAGE_FLAGS_2_CREATE_INFO_KHR,
        .usage = VK_IMAGE_USAGE_2_STORAGE_BIT_KHR | VK_IMAGE_USAGE_2_SAMPLED_BIT_KHR};
    const VkImageCreateFlags2CreateInfoKHR flags{
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_FLAGS_2_CREATE_INFO_KHR,
        .pNext = &usage,
        .flags = VK_IMAGE_CREATE_2_ALIAS_SINGLE_LAYER_DESCRIPTOR_BIT_KHR};
    const VkImageCreateInfo info{.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                 .pNext = &flags,
                                 .imageType = VK_IMAGE_TYPE_2D,
                                 .format = VK_FORMAT_R32_UINT,
                                 .extent = kExtent,
                                 .mipLevels = 1,
                                 .arrayLayers = 4,
                                 .samples = VK_SAMPLE_COUNT_1_BIT};
    CreateBound(info, image);
    ToGeneral(image.handle, VK_IMAGE_ASPECT_COLOR_BIT);
    constexpr VkImageSubresourceRange kLayer{VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 2, 1};
    const VkImageView plane =
        MakeView(image, {.viewType = VK_IMAGE_VIEW_TYPE_2D, .subresourceRange = kLayer});
    const VkImageView array =
        MakeView(image, {.viewType = VK_IMAGE_VIEW_TYPE_2D_ARRAY, .subresourceRange = kLayer});
    const TestImage from = MakeImage({.format = VK_FORMAT_R32_UINT, .extent = kExtent});
    const std::vector<uint8_t> bytes = Noise(from.LevelBytes(0), 11);
    Upload(from, bytes);
    const size_t texels = size_t{kExtent.width} * kExtent.height;
    TestBuffer told = MakeBuffer(4 * texels);
    Run(MakeImagePipeline(spirv::kImageTexelsUint,
                          {Slot::Storage(MakeView(from, VK_IMAGE_VIEW_TYPE_2D)),
                           Slot::Storage(array), Slot::Buffer(told)}),
        3, 2);
    TestBuffer out = MakeBuffer(4 * texels);
    const TestPipeline fetch = MakeImagePipeline(
        spirv::kImageFetchUint, {Slot::Combined(plane, MakeSampler({})), Slot::Buffer(out)});
    VkCommandBuffer commands = Begin();
    Bind(commands, fetch);
    const uint32_t level = 0;
    vkCmdPushConstants(commands, fetch.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4, &level);
    // More slices of invocations than layers: the size is one layer.
    vkCmdDispatch(commands, 3, 1, 2);
    Run(commands);
    for (size_t i = 0; i < texels; ++i) {
        uint32_t texel = 0;
        std::memcpy(&texel, bytes.data() + 4 * i, 4);
        ASSERT_EQ(out.words[4 * i], texel) << i;
    }
}

TEST_F(ImageFlagsTest, TransfersOfAnyBoxAreAlike) {
    uint32_t count = 0;
    vkGetPhysicalDeviceQueueFamilyProperties2(physical_, &count, nullptr);
    std::vector<VkQueueFamilyOptimalImageTransferGranularityPropertiesKHR> best(
        count,
        {.sType =
             VK_STRUCTURE_TYPE_QUEUE_FAMILY_OPTIMAL_IMAGE_TRANSFER_GRANULARITY_PROPERTIES_KHR});
    std::vector<VkQueueFamilyProperties2> families(count);
    for (uint32_t i = 0; i < count; ++i) {
        families[i] = {.sType = VK_STRUCTURE_TYPE_QUEUE_FAMILY_PROPERTIES_2, .pNext = &best[i]};
    }
    vkGetPhysicalDeviceQueueFamilyProperties2(physical_, &count, families.data());
    for (uint32_t i = 0; i < count; ++i) {
        const VkExtent3D& box = best[i].optimalImageTransferGranularity;
        EXPECT_EQ(box.width * 100 + box.height * 10 + box.depth, 111u);
        // "Require minImageTransferGranularity to be (1,1,1)".
        const VkExtent3D& least = families[i].queueFamilyProperties.minImageTransferGranularity;
        EXPECT_EQ(least.width * 100 + least.height * 10 + least.depth, 111u);
    }
}

}  // namespace
}  // namespace fornax::test

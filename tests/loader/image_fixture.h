// What the tests of images share: images with their data uploaded and read back, views, samplers,
// and pipelines with any descriptors.
#pragma once

#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {

struct ImageSpec {
    VkImageType type = VK_IMAGE_TYPE_2D;
    VkFormat format = VK_FORMAT_R32_SFLOAT;
    VkExtent3D extent = {1, 1, 1};
    uint32_t levels = 1;
    uint32_t layers = 1;
    VkImageUsageFlags usage = VK_IMAGE_USAGE_STORAGE_BIT;  // beside transfers
    VkImageCreateFlags flags = 0;
    VkImageTiling tiling = VK_IMAGE_TILING_OPTIMAL;
    VkSampleCountFlagBits samples = VK_SAMPLE_COUNT_1_BIT;
};

struct TestImage {
    ImageSpec spec;
    VkImage handle = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    uint32_t texel_bytes = 4;
    VkImageAspectFlags aspect = VK_IMAGE_ASPECT_COLOR_BIT;

    VkExtent3D LevelExtent(uint32_t level) const;
    // The bytes of all layers or slices of a level, without gaps.
    size_t LevelBytes(uint32_t level) const;
};

// What one descriptor is; the member of its type counts.
struct Slot {
    VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    VkDescriptorImageInfo image = {};
    VkBufferView texels = VK_NULL_HANDLE;
    TestBuffer buffer = {};
    VkSampler immutable = VK_NULL_HANDLE;  // of the layout; then `image.sampler` must mean nothing

    static Slot Buffer(const TestBuffer& buffer) { return {.buffer = buffer}; }
    static Slot Storage(VkImageView view) {
        return {.type = VK_DESCRIPTOR_TYPE_STORAGE_IMAGE,
                .image = {VK_NULL_HANDLE, view, VK_IMAGE_LAYOUT_GENERAL}};
    }
    static Slot Sampled(VkImageView view) {
        return {.type = VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE,
                .image = {VK_NULL_HANDLE, view, VK_IMAGE_LAYOUT_GENERAL}};
    }
    static Slot Sampler(VkSampler sampler) {
        return {.type = VK_DESCRIPTOR_TYPE_SAMPLER,
                .image = {sampler, VK_NULL_HANDLE, VK_IMAGE_LAYOUT_UNDEFINED}};
    }
    static Slot Combined(VkImageView view, VkSampler sampler) {
        return {.type = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
                .image = {sampler, view, VK_IMAGE_LAYOUT_GENERAL}};
    }
    static Slot Texels(VkDescriptorType type, VkBufferView view) {
        return {.type = type, .texels = view};
    }
};

class ImageTest : public VulkanTest {
  protected:
    void TearDown() override;
    // Before SetUp: for formats that are in no version before 1.4.
    void EnableYoungFormats();
    void ToGeneral(VkImage image, VkImageAspectFlags aspects);
    // What MakeImage has no words for; in no layout yet.
    void CreateBound(const VkImageCreateInfo& info, TestImage& image);
    // In the layout GENERAL, with undefined contents.
    TestImage MakeImage(const ImageSpec& spec);
    VkImageView MakeView(const TestImage& image, VkImageViewType type);
    VkImageView MakeView(const TestImage& image, VkImageViewCreateInfo info);
    VkBufferView MakeTexels(const TestBuffer& buffer, VkFormat format);
    VkSampler MakeSampler(VkSamplerCreateInfo info);
    // Through a buffer, all layers of a level at once and without gaps.
    void Upload(const TestImage& image, std::span<const uint8_t> bytes, uint32_t level = 0);
    // Through the host's mapping of a linear image of one level.
    void WriteLinear(const TestImage& image, std::span<const uint8_t> bytes);
    std::vector<uint8_t> Download(const TestImage& image, uint32_t level = 0);
    // Writes a set's descriptors.
    void WriteSlots(VkDescriptorSet set, const std::vector<std::vector<Slot>>& bindings);
    // One descriptor a binding of set 0, arrays where a binding has several.
    TestPipeline MakeImagePipeline(std::span<const uint32_t> spirv,
                                   const std::vector<std::vector<Slot>>& bindings);
    TestPipeline MakeImagePipeline(std::span<const uint32_t> spirv,
                                   const std::vector<Slot>& bindings);

    bool update_after_bind_ = false;  // of sets made from now on

  private:
    // A place in a buffer for the bytes of an image, at a multiple of its texels' size.
    struct Staging {
        VkBuffer buffer;
        VkDeviceSize offset;
        uint8_t* bytes;
    };
    Staging MakeStaging(const TestImage& image, size_t size);

    VkPhysicalDeviceMaintenance5Features maintenance5_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_5_FEATURES,
        .maintenance5 = VK_TRUE};
    VkPhysicalDevice4444FormatsFeaturesEXT formats_4444_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_4444_FORMATS_FEATURES_EXT,
        .pNext = &maintenance5_,
        .formatA4R4G4B4 = VK_TRUE,
        .formatA4B4G4R4 = VK_TRUE};
};

// Random bytes.
std::vector<uint8_t> Noise(size_t bytes, uint32_t seed);

}  // namespace fornax::test

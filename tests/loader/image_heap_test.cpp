// Images and samplers in descriptor heaps: descriptors that no object stands for.
#include <array>
#include <cstring>

#include "tests/loader/image_fixture.h"
#include "tests/loader/shaders/heap_image.spv.h"
#include "tests/loader/shaders/image_heap.spv.h"

namespace fornax::test {
namespace {

class ImageHeapTest : public ImageTest {
  protected:
    void SetUp() override {
        api_version_ = VK_API_VERSION_1_4;
        more_extensions_ = {
            VK_EXT_DESCRIPTOR_HEAP_EXTENSION_NAME, VK_KHR_SHADER_UNTYPED_POINTERS_EXTENSION_NAME,
            VK_EXT_ROBUSTNESS_2_EXTENSION_NAME, VK_EXT_CUSTOM_BORDER_COLOR_EXTENSION_NAME};
        more_features_ = &heaps_;
        heaps_.pNext = &addresses_;
        addresses_.pNext = &nulls_;
        nulls_.pNext = &borders_;
        borders_.pNext = &maintenance5_;
        maintenance5_.pNext = &untyped_;
        VulkanTest::SetUp();
    }
    VkDeviceAddress AddressOf(const TestBuffer& buffer) {
        const VkBufferDeviceAddressInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                             .buffer = buffer.handle};
        return vkGetBufferDeviceAddress(device_, &info) + buffer.offset;
    }
    VkHostAddressRangeEXT Place(const TestBuffer& heap, uint32_t slot) {
        return {reinterpret_cast<std::byte*>(heap.words) + slot * kStride, kStride};
    }
    // A null image gives the null descriptor.
    void PutImage(const TestBuffer& heap,
                  uint32_t slot,
                  VkDescriptorType type,
                  const TestImage* image) {
        VkImageViewCreateInfo view{.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
                                   .viewType = VK_IMAGE_VIEW_TYPE_2D};
        if (image) {
            view.image = image->handle;
            view.format = image->spec.format;
            view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, image->spec.levels, 0, 1};
        }
        const VkImageDescriptorInfoEXT info{.sType = VK_STRUCTURE_TYPE_IMAGE_DESCRIPTOR_INFO_EXT,
                                            .pView = &view,
                                            .layout = VK_IMAGE_LAYOUT_GENERAL};
        const VkResourceDescriptorInfoEXT resource{
            .sType = VK_STRUCTURE_TYPE_RESOURCE_DESCRIPTOR_INFO_EXT,
            .type = type,
            .data = {.pImage = image ? &info : nullptr}};
        const VkHostAddressRangeEXT out = Place(heap, slot);
        EXPECT_VK(vkWriteResourceDescriptorsEXT(device_, 1, &resource, &out));
    }
    static VkSamplerCreateInfo Sampler(VkSamplerAddressMode mode) {
        return {.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                .addressModeU = mode,
                .addressModeV = mode,
                .addressModeW = mode,
                .maxLod = VK_LOD_CLAMP_NONE,
                .borderColor = VK_BORDER_COLOR_FLOAT_OPAQUE_WHITE};
    }
    static VkDescriptorSetAndBindingMappingEXT Mapping(uint32_t binding) {
        VkDescriptorSetAndBindingMappingEXT mapping{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_AND_BINDING_MAPPING_EXT,
            .firstBinding = binding,
            .bindingCount = 1,
            .resourceMask = VK_SPIRV_RESOURCE_TYPE_ALL_EXT,
            .source = VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_CONSTANT_OFFSET_EXT};
        mapping.sourceData.constantOffset = {};
        return mapping;
    }
    VkPipeline MakeHeapPipeline(std::span<const uint32_t> spirv,
                                std::span<const VkDescriptorSetAndBindingMappingEXT> mappings) {
        const VkShaderDescriptorSetAndBindingMappingInfoEXT mapping_info{
            .sType = VK_STRUCTURE_TYPE_SHADER_DESCRIPTOR_SET_AND_BINDING_MAPPING_INFO_EXT,
            .mappingCount = static_cast<uint32_t>(mappings.size()),
            .pMappings = mappings.data()};
        const VkShaderModuleCreateInfo module_info{
            .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
            .pNext = &mapping_info,
            .codeSize = spirv.size_bytes(),
            .pCode = spirv.data()};
        const VkPipelineCreateFlags2CreateInfo flags{
            .sType = VK_STRUCTURE_TYPE_PIPELINE_CREATE_FLAGS_2_CREATE_INFO,
            .flags = VK_PIPELINE_CREATE_2_DESCRIPTOR_HEAP_BIT_EXT};
        const VkComputePipelineCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
            .pNext = &flags,
            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                      .pNext = &module_info,
                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                      .pName = "main"}};
        VkPipeline pipeline = VK_NULL_HANDLE;
        EXPECT_VK(vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline));
        AtEnd([this, pipeline] { vkDestroyPipeline(device_, pipeline, nullptr); });
        return pipeline;
    }
    void BindResources(VkCommandBuffer commands, const TestBuffer& heap) {
        const VkBindHeapInfoEXT info{.sType = VK_STRUCTURE_TYPE_BIND_HEAP_INFO_EXT,
                                     .heapRange = {AddressOf(heap), heap.size}};
        vkCmdBindResourceHeapEXT(commands, &info);
    }
    // Runs the shader and checks what it read; `combined` maps binding 0 in some way.
    void RunAndCheck(const VkDescriptorSetAndBindingMappingEXT& combined);

    static constexpr uint32_t kStride = 64;
    static constexpr VkBufferUsageFlags kHeapUsage =
        VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | VK_BUFFER_USAGE_DESCRIPTOR_HEAP_BIT_EXT;
    // The border of the samplers in the heap that clamp; without it the border is white.
    const VkSamplerCustomBorderColorIndexCreateInfoEXT* border_ = nullptr;
    std::array<float, 4> expected_border_ = {1, 1, 1, 1};
    VkPhysicalDeviceCustomBorderColorFeaturesEXT borders_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_CUSTOM_BORDER_COLOR_FEATURES_EXT,
        .customBorderColors = VK_TRUE,
        .customBorderColorWithoutFormat = VK_TRUE};
    VkPhysicalDeviceShaderUntypedPointersFeaturesKHR untyped_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_UNTYPED_POINTERS_FEATURES_KHR,
        .shaderUntypedPointers = VK_TRUE};
    VkPhysicalDeviceMaintenance5Features maintenance5_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_5_FEATURES,
        .maintenance5 = VK_TRUE};
    VkPhysicalDeviceDescriptorHeapFeaturesEXT heaps_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_HEAP_FEATURES_EXT,
        .descriptorHeap = VK_TRUE};
    VkPhysicalDeviceBufferDeviceAddressFeatures addresses_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
        .bufferDeviceAddress = VK_TRUE};
    VkPhysicalDeviceRobustness2FeaturesEXT nulls_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT,
        .nullDescriptor = VK_TRUE};
};

void ImageHeapTest::RunAndCheck(const VkDescriptorSetAndBindingMappingEXT& combined) {
    const TestBuffer resources = MakeBuffer(512, kHeapUsage);
    const TestBuffer samplers = MakeBuffer(256, kHeapUsage);
    const TestBuffer out = MakeBuffer(40, kHeapUsage);
    const TestImage image = MakeImage({.format = VK_FORMAT_R8G8B8A8_UNORM,
                                       .extent = {8, 8, 1},
                                       .levels = 3,
                                       .usage = VK_IMAGE_USAGE_SAMPLED_BIT});
    for (uint32_t level = 0; level < 3; ++level) {
        const std::vector<uint8_t> bytes(image.LevelBytes(level),
                                         static_cast<uint8_t>(51 * (level + 1)));
        Upload(image, bytes, level);
    }
    const TestImage stored = MakeImage({.format = VK_FORMAT_R8G8B8A8_UNORM, .extent = {2, 1, 1}});
    Upload(stored, std::array<uint8_t, 8>{255, 0, 0, 255});
    PutImage(resources, 2, VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE, nullptr);
    PutImage(resources, 3, VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE, &image);
    PutImage(resources, 5, VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, &stored);
    for (const uint32_t slot : {1u, 2u, 4u}) {
        VkSamplerCreateInfo sampler = Sampler(slot == 4 ? VK_SAMPLER_ADDRESS_MODE_REPEAT
                                                        : VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER);
        if (border_) {
            sampler.pNext = border_;
            sampler.borderColor = VK_BORDER_COLOR_FLOAT_CUSTOM_EXT;
        }
        const VkHostAddressRangeEXT place = Place(samplers, slot);
        ASSERT_VK(vkWriteSamplerDescriptorsEXT(device_, 1, &sampler, &place));
    }
    auto separate = Mapping(1);
    separate.sourceData.constantOffset.heapOffset = 3 * kStride;
    auto wrapping = Mapping(2);
    wrapping.sourceData.constantOffset.heapOffset = 4 * kStride;
    auto written = Mapping(3);
    written.sourceData.constantOffset.heapOffset = 5 * kStride;
    auto result = Mapping(4);
    result.source = VK_DESCRIPTOR_MAPPING_SOURCE_PUSH_ADDRESS_EXT;
    result.sourceData.pushAddressOffset = 8;
    const VkDescriptorSetAndBindingMappingEXT mappings[] = {combined, separate, wrapping, written,
                                                            result};
    const VkPipeline pipeline = MakeHeapPipeline(spirv::kImageHeap, mappings);
    ASSERT_NE(pipeline, VK_NULL_HANDLE);

    VkCommandBuffer commands = Begin();
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    BindResources(commands, resources);
    const VkBindHeapInfoEXT sampler_heap{.sType = VK_STRUCTURE_TYPE_BIND_HEAP_INFO_EXT,
                                         .heapRange = {AddressOf(samplers), samplers.size}};
    vkCmdBindSamplerHeapEXT(commands, &sampler_heap);
    // Twenty bits of the image's index, then those of the sampler's.
    const uint32_t packed = 2 | 1 << 20;
    const VkPushDataInfoEXT push_index{.sType = VK_STRUCTURE_TYPE_PUSH_DATA_INFO_EXT,
                                       .offset = 0,
                                       .data = {&packed, sizeof(packed)}};
    vkCmdPushDataEXT(commands, &push_index);
    const VkDeviceAddress address = AddressOf(out);
    const VkPushDataInfoEXT push_address{.sType = VK_STRUCTURE_TYPE_PUSH_DATA_INFO_EXT,
                                         .offset = 8,
                                         .data = {&address, sizeof(address)}};
    vkCmdPushDataEXT(commands, &push_address);
    vkCmdDispatch(commands, 1, 1, 1);
    Run(commands);

    const auto expect = [&](uint32_t at, std::array<float, 4> value) {
        for (uint32_t i = 0; i < 4; ++i) {
            EXPECT_FLOAT_EQ(out.floats()[4 * at + i], value[i]) << at << " " << i;
        }
    };
    for (uint32_t level = 0; level < 3; ++level) {
        const float value = 0.2f * static_cast<float>(level + 1);
        expect(level, {value, value, value, value});
        expect(3 + level, {value, value, value, value});
    }
    expect(6, expected_border_);
    expect(7, {0.4f, 0.4f, 0.4f, 0.4f});
    expect(8, {1, 0, 0, 1});
    expect(9, {0, 0, 0, 0});
    const std::vector<uint8_t> texels = Download(stored);
    EXPECT_EQ(texels, (std::vector<uint8_t>{255, 0, 0, 255, 0, 255, 0, 255}));
}

TEST_F(ImageHeapTest, SamplersInTheHeap) {
    auto combined = Mapping(0);
    combined.sourceData.constantOffset = {.heapOffset = 2 * kStride,
                                          .heapArrayStride = kStride,
                                          .samplerHeapOffset = kStride,
                                          .samplerHeapArrayStride = kStride};
    RunAndCheck(combined);
}

TEST_F(ImageHeapTest, BordersOfAnyColor) {
    const VkSamplerCustomBorderColorCreateInfoEXT color{
        .sType = VK_STRUCTURE_TYPE_SAMPLER_CUSTOM_BORDER_COLOR_CREATE_INFO_EXT,
        .customBorderColor = {.float32 = {0.125f, 0.25f, 0.5f, 0.75f}}};
    uint32_t first = UINT32_MAX;
    uint32_t second = UINT32_MAX;
    ASSERT_VK(vkRegisterCustomBorderColorEXT(device_, &color, VK_FALSE, &first));
    ASSERT_VK(vkRegisterCustomBorderColorEXT(device_, &color, VK_FALSE, &second));
    EXPECT_NE(first, second);
    // What is registered is taken until it is unregistered.
    uint32_t wanted = first;
    EXPECT_EQ(vkRegisterCustomBorderColorEXT(device_, &color, VK_TRUE, &wanted),
              VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS);
    vkUnregisterCustomBorderColorEXT(device_, first);
    EXPECT_VK(vkRegisterCustomBorderColorEXT(device_, &color, VK_TRUE, &wanted));
    EXPECT_EQ(wanted, first);
    VkPhysicalDeviceCustomBorderColorPropertiesEXT limits{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_CUSTOM_BORDER_COLOR_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                           .pNext = &limits};
    vkGetPhysicalDeviceProperties2(physical_, &properties);
    wanted = limits.maxCustomBorderColorSamplers - 1;
    EXPECT_VK(vkRegisterCustomBorderColorEXT(device_, &color, VK_TRUE, &wanted));
    vkUnregisterCustomBorderColorEXT(device_, wanted);

    const VkSamplerCustomBorderColorIndexCreateInfoEXT index{
        .sType = VK_STRUCTURE_TYPE_SAMPLER_CUSTOM_BORDER_COLOR_INDEX_CREATE_INFO_EXT,
        .pNext = &color,
        .index = second};
    border_ = &index;
    expected_border_ = {0.125f, 0.25f, 0.5f, 0.75f};
    auto combined = Mapping(0);
    combined.sourceData.constantOffset = {.heapOffset = 2 * kStride,
                                          .heapArrayStride = kStride,
                                          .samplerHeapOffset = kStride,
                                          .samplerHeapArrayStride = kStride};
    RunAndCheck(combined);
    vkUnregisterCustomBorderColorEXT(device_, first);
    vkUnregisterCustomBorderColorEXT(device_, second);
}

TEST_F(ImageHeapTest, SamplersInThePipeline) {
    if (Validated()) {
        GTEST_SKIP() << "The layer rightly complains that the variable is an array.";
    }
    const VkSamplerCreateInfo sampler = Sampler(VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER);
    auto combined = Mapping(0);
    combined.sourceData.constantOffset = {
        .heapOffset = 2 * kStride, .heapArrayStride = kStride, .pEmbeddedSampler = &sampler};
    RunAndCheck(combined);
}

TEST_F(ImageHeapTest, PackedIndices) {
    auto combined = Mapping(0);
    combined.source = VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_PUSH_INDEX_EXT;
    combined.sourceData.pushIndex = {.heapOffset = 0,
                                     .pushOffset = 0,
                                     .heapIndexStride = kStride,
                                     .heapArrayStride = kStride,
                                     .useCombinedImageSamplerIndex = VK_TRUE,
                                     .samplerHeapOffset = 0,
                                     .samplerPushOffset = 0,
                                     .samplerHeapIndexStride = kStride,
                                     .samplerHeapArrayStride = kStride};
    RunAndCheck(combined);
}

TEST_F(ImageHeapTest, AtomicsOnAMemberOfTheHeap) {
    const TestBuffer resources = MakeBuffer(64, kHeapUsage);
    const TestImage image = MakeImage(
        {.format = VK_FORMAT_R32_UINT, .extent = {4, 1, 1}, .usage = VK_IMAGE_USAGE_STORAGE_BIT});
    Upload(image, std::array<uint8_t, 16>{});
    PutImage(resources, 2, VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, &image);
    const VkPipeline pipeline = MakeHeapPipeline(spirv::kHeapImage, {});
    VkCommandBuffer commands = Begin();
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    BindResources(commands, resources);
    vkCmdDispatch(commands, 1, 1, 1);
    Run(commands);
    // Texel x is the sum of x, x + 4, ... x + 28.
    const std::vector<uint8_t> texels = Download(image);
    for (uint32_t x = 0; x < 4; ++x) {
        uint32_t word = 0;
        std::memcpy(&word, texels.data() + 4 * x, 4);
        EXPECT_EQ(word, 112 + 8 * x);
    }
}

}  // namespace
}  // namespace fornax::test

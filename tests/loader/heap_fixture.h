// Descriptor heaps in tests: a heap with the descriptors of three buffers, and a shader that reads
// two of them and a block, and writes the third. Where it finds them, each test maps.
#pragma once

#include <array>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/loader/shaders/heap_mapped.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {

class HeapTest : public VulkanTest {
  protected:
    void SetUp() override {
        api_version_ = VK_API_VERSION_1_4;
        more_extensions_.push_back(VK_EXT_DESCRIPTOR_HEAP_EXTENSION_NAME);
        more_extensions_.push_back(VK_KHR_SHADER_UNTYPED_POINTERS_EXTENSION_NAME);
        addresses_.pNext = more_features_;
        more_features_ = &heaps_;
        heaps_.pNext = &untyped_;
        untyped_.pNext = &cache_control_;
        maintenance5_.pNext = &addresses_;
        VulkanTest::SetUp();
        if (HasFatalFailure()) {
            return;
        }
        heap_ = MakeAddressable(1024);
        indirect_ = MakeAddressable(64);
        for (uint32_t i = 0; i < 3; ++i) {
            buffers_[i] = MakeAddressable(32);
        }
        std::iota(buffers_[0].span().begin(), buffers_[0].span().end(), 1u);
        std::iota(buffers_[1].span().begin(), buffers_[1].span().end(), 500u);
        // Spread, so that strides and indices must be right.
        for (uint32_t i = 0; i < 3; ++i) {
            PutBuffer(buffers_[i], kFirstSlot + i);
        }
    }

    TestBuffer MakeAddressable(size_t words) {
        return MakeBuffer(words, VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                                     VK_BUFFER_USAGE_DESCRIPTOR_HEAP_BIT_EXT);
    }
    VkDeviceAddress AddressOf(const TestBuffer& buffer) {
        const VkBufferDeviceAddressInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                             .buffer = buffer.handle};
        return vkGetBufferDeviceAddress(device_, &info) + buffer.offset;
    }
    void PutBuffer(const TestBuffer& buffer, uint32_t slot) {
        const VkDeviceAddressRangeEXT range{AddressOf(buffer), buffer.size};
        const VkResourceDescriptorInfoEXT info{
            .sType = VK_STRUCTURE_TYPE_RESOURCE_DESCRIPTOR_INFO_EXT,
            .type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .data = {.pAddressRange = &range}};
        const VkHostAddressRangeEXT out{reinterpret_cast<std::byte*>(heap_.words) + slot * kStride,
                                        kStride};
        EXPECT_VK(vkWriteResourceDescriptorsEXT(device_, 1, &info, &out));
    }
    static VkDescriptorSetAndBindingMappingEXT Mapping(uint32_t set,
                                                       uint32_t binding,
                                                       VkDescriptorMappingSourceEXT source) {
        return {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_AND_BINDING_MAPPING_EXT,
                .descriptorSet = set,
                .firstBinding = binding,
                .bindingCount = 1,
                .resourceMask = VK_SPIRV_RESOURCE_TYPE_ALL_EXT,
                .source = source};
    }
    // Null, and the refusal in messages_, where the mappings are no good.
    VkPipeline TryHeapPipeline(std::span<const uint32_t> spirv,
                               std::span<const VkDescriptorSetAndBindingMappingEXT> mappings,
                               VkPipelineCache cache = VK_NULL_HANDLE,
                               VkPipelineCreateFlags2 more_flags = 0) {
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
            .flags = VK_PIPELINE_CREATE_2_DESCRIPTOR_HEAP_BIT_EXT | more_flags};
        const VkComputePipelineCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
            .pNext = &flags,
            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                      .pNext = &module_info,
                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                      .pName = "main"}};
        VkPipeline pipeline = VK_NULL_HANDLE;
        const VkResult result =
            vkCreateComputePipelines(device_, cache, 1, &info, nullptr, &pipeline);
        EXPECT_EQ(result == VK_SUCCESS, pipeline != VK_NULL_HANDLE);
        AtEnd([this, pipeline] { vkDestroyPipeline(device_, pipeline, nullptr); });
        return pipeline;
    }
    // What the driver said last, which is no failure then.
    std::string TakeMessage() {
        std::string message = messages_.empty() ? "" : messages_.back();
        messages_.clear();
        return message;
    }
    VkBindHeapInfoEXT HeapInfo() {
        return {.sType = VK_STRUCTURE_TYPE_BIND_HEAP_INFO_EXT,
                .heapRange = {AddressOf(heap_), heap_.size}};
    }
    void BindHeap(VkCommandBuffer commands) {
        const VkBindHeapInfoEXT info = HeapInfo();
        vkCmdBindResourceHeapEXT(commands, &info);
    }
    void PushData(VkCommandBuffer commands, uint32_t offset, const void* data, size_t size) {
        const VkPushDataInfoEXT info{
            .sType = VK_STRUCTURE_TYPE_PUSH_DATA_INFO_EXT, .offset = offset, .data = {data, size}};
        vkCmdPushDataEXT(commands, &info);
    }
    // Runs the mapped shader with what each test mapped, and checks its results.
    void RunMapped(std::span<const VkDescriptorSetAndBindingMappingEXT> mappings) {
        const VkPipeline pipeline = TryHeapPipeline(spirv::kHeapMapped, mappings);
        ASSERT_NE(pipeline, VK_NULL_HANDLE);
        RunMapped(pipeline);
    }
    void RunMapped(VkPipeline pipeline) {
        std::ranges::fill(buffers_[2].span(), 0u);
        VkCommandBuffer commands = Begin();
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        BindHeap(commands);
        PushData(commands, 0, push_.data(), sizeof(push_));
        vkCmdDispatch(commands, 1, 1, 1);
        Run(commands);
        ExpectMapped();
    }
    void ExpectMapped() {
        for (uint32_t i = 0; i < 32; ++i) {
            ASSERT_EQ(buffers_[2].words[i], 1 + i + 10 * (500 + i) + kMore[i % 4]) << i;
        }
    }
    // Bytes of push data that hold a 64-bit address.
    void PushAddress(uint32_t offset, VkDeviceAddress address) {
        std::memcpy(reinterpret_cast<std::byte*>(push_.data()) + offset, &address, sizeof(address));
    }
    VkDescriptorSetAndBindingMappingEXT BlockInPushData() {
        std::memcpy(&push_[16], kMore.data(), sizeof(kMore));
        auto block = Mapping(1, 0, VK_DESCRIPTOR_MAPPING_SOURCE_PUSH_DATA_EXT);
        block.sourceData.pushDataOffset = 64;
        return block;
    }
    VkDescriptorSetAndBindingMappingEXT InAtConstant() {
        auto in = Mapping(3, 4, VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_CONSTANT_OFFSET_EXT);
        in.sourceData.constantOffset = {.heapOffset = kFirstSlot * kStride,
                                        .heapArrayStride = kStride};
        return in;
    }
    VkDescriptorSetAndBindingMappingEXT OutAtAddress() {
        PushAddress(8, AddressOf(buffers_[2]));
        auto out = Mapping(3, 6, VK_DESCRIPTOR_MAPPING_SOURCE_PUSH_ADDRESS_EXT);
        out.sourceData.pushAddressOffset = 8;
        return out;
    }

    static constexpr uint32_t kStride = 64;
    static constexpr uint32_t kFirstSlot = 5;
    static constexpr std::array<uint32_t, 4> kMore = {100000, 200000, 300000, 400000};
    TestBuffer heap_;
    TestBuffer indirect_;
    TestBuffer buffers_[3];
    std::array<uint32_t, 32> push_ = {};
    VkPhysicalDeviceDescriptorHeapFeaturesEXT heaps_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_HEAP_FEATURES_EXT,
        .descriptorHeap = VK_TRUE};
    VkPhysicalDeviceShaderUntypedPointersFeaturesKHR untyped_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_UNTYPED_POINTERS_FEATURES_KHR,
        .shaderUntypedPointers = VK_TRUE};
    // Pipelines of modules that are no objects, and those that a cache must have.
    VkPhysicalDeviceMaintenance5Features maintenance5_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_5_FEATURES,
        .maintenance5 = VK_TRUE};
    VkPhysicalDevicePipelineCreationCacheControlFeatures cache_control_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES,
        .pNext = &maintenance5_,
        .pipelineCreationCacheControl = VK_TRUE};
    VkPhysicalDeviceBufferDeviceAddressFeatures addresses_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
        .bufferDeviceAddress = VK_TRUE};
};

}  // namespace fornax::test

// Descriptor heaps with shader objects and pipeline binaries, which carry their mappings.
#include "tests/loader/heap_fixture.h"

namespace fornax::test {
namespace {

class HeapObjectsTest : public HeapTest {
  protected:
    void SetUp() override {
        more_extensions_ = {VK_EXT_SHADER_OBJECT_EXTENSION_NAME,
                            VK_KHR_PIPELINE_BINARY_EXTENSION_NAME};
        more_features_ = &shader_object_;
        HeapTest::SetUp();
    }

    VkShaderEXT MakeShader(std::span<const VkDescriptorSetAndBindingMappingEXT> mappings) {
        const VkShaderDescriptorSetAndBindingMappingInfoEXT mapping_info{
            .sType = VK_STRUCTURE_TYPE_SHADER_DESCRIPTOR_SET_AND_BINDING_MAPPING_INFO_EXT,
            .mappingCount = static_cast<uint32_t>(mappings.size()),
            .pMappings = mappings.data()};
        return Make({.sType = VK_STRUCTURE_TYPE_SHADER_CREATE_INFO_EXT,
                     .pNext = &mapping_info,
                     .flags = VK_SHADER_CREATE_DESCRIPTOR_HEAP_BIT_EXT,
                     .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                     .codeType = VK_SHADER_CODE_TYPE_SPIRV_EXT,
                     .codeSize = sizeof(spirv::kHeapMapped),
                     .pCode = spirv::kHeapMapped,
                     .pName = "main"});
    }
    VkShaderEXT MakeShader(const std::vector<uint64_t>& binary) {
        return Make({.sType = VK_STRUCTURE_TYPE_SHADER_CREATE_INFO_EXT,
                     .flags = VK_SHADER_CREATE_DESCRIPTOR_HEAP_BIT_EXT,
                     .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                     .codeType = VK_SHADER_CODE_TYPE_BINARY_EXT,
                     .codeSize = binary.size() * sizeof(uint64_t) - padding_,
                     .pCode = binary.data(),
                     .pName = "main"});
    }
    VkShaderEXT Make(const VkShaderCreateInfoEXT& info) {
        VkShaderEXT shader = VK_NULL_HANDLE;
        EXPECT_VK(vkCreateShadersEXT(device_, 1, &info, nullptr, &shader));
        AtEnd([this, shader] { vkDestroyShaderEXT(device_, shader, nullptr); });
        return shader;
    }
    std::vector<uint64_t> BinaryOf(VkShaderEXT shader) {
        size_t size = 0;
        EXPECT_VK(vkGetShaderBinaryDataEXT(device_, shader, &size, nullptr));
        std::vector<uint64_t> binary((size + 7) / 8);
        padding_ = binary.size() * 8 - size;
        EXPECT_VK(vkGetShaderBinaryDataEXT(device_, shader, &size, binary.data()));
        return binary;
    }
    void RunShader(VkShaderEXT shader) {
        std::ranges::fill(buffers_[2].span(), 0u);
        VkCommandBuffer commands = Begin();
        constexpr VkShaderStageFlagBits kStage = VK_SHADER_STAGE_COMPUTE_BIT;
        vkCmdBindShadersEXT(commands, 1, &kStage, &shader);
        BindHeap(commands);
        PushData(commands, 0, push_.data(), sizeof(push_));
        vkCmdDispatch(commands, 1, 1, 1);
        Run(commands);
        ExpectMapped();
    }

    size_t padding_ = 0;  // behind the last binary
    VkPhysicalDevicePipelineBinaryFeaturesKHR binaries_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_BINARY_FEATURES_KHR,
        .pipelineBinaries = VK_TRUE};
    VkPhysicalDeviceShaderObjectFeaturesEXT shader_object_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_OBJECT_FEATURES_EXT,
        .pNext = &binaries_,
        .shaderObject = VK_TRUE};
};

TEST_F(HeapObjectsTest, ShadersAndTheirBinaries) {
    const VkDescriptorSetAndBindingMappingEXT mappings[] = {InAtConstant(), OutAtAddress(),
                                                            BlockInPushData()};
    const VkShaderEXT shader = MakeShader(mappings);
    RunShader(shader);
    const std::vector<uint64_t> binary = BinaryOf(shader);
    const VkShaderEXT again = MakeShader(binary);
    RunShader(again);
    EXPECT_EQ(BinaryOf(again), binary);
}

// "must remain identical even if the mapping entries vary" in what the shader does not use
// (VkShaderCreateInfoEXT).
TEST_F(HeapObjectsTest, WhatIsNotUsedIsNotInTheBinary) {
    if (Validated()) {
        GTEST_SKIP() << "The layer rightly complains of mappings that overlap.";
    }
    const VkDescriptorSetAndBindingMappingEXT mappings[] = {InAtConstant(), OutAtAddress(),
                                                            BlockInPushData()};
    const std::vector<uint64_t> binary = BinaryOf(MakeShader(mappings));
    const VkSamplerCreateInfo sampler{.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                                      .maxLod = VK_LOD_CLAMP_NONE};
    auto in = InAtConstant();
    in.bindingCount = 2;
    in.sourceData.constantOffset.samplerHeapOffset = 128;
    in.sourceData.constantOffset.samplerHeapArrayStride = 32;
    in.sourceData.constantOffset.pEmbeddedSampler = &sampler;
    auto unused = InAtConstant();
    unused.descriptorSet = 7;
    auto other_resources = InAtConstant();
    other_resources.resourceMask = VK_SPIRV_RESOURCE_TYPE_SAMPLER_BIT_EXT;
    const VkDescriptorSetAndBindingMappingEXT varied[] = {
        other_resources, unused, BlockInPushData(), OutAtAddress(), in, unused};
    const VkShaderEXT shader = MakeShader(varied);
    EXPECT_EQ(BinaryOf(shader), binary);
    RunShader(shader);
    // What is used is.
    auto moved = InAtConstant();
    moved.sourceData.constantOffset.heapOffset += kStride;
    const VkDescriptorSetAndBindingMappingEXT changed[] = {moved, mappings[1], mappings[2]};
    EXPECT_NE(BinaryOf(MakeShader(changed)), binary);
}

// Beside a binary the mappings of the stage are ignored (VkPipelineBinaryInfoKHR).
TEST_F(HeapObjectsTest, PipelineBinariesCarryTheirMappings) {
    const VkDescriptorSetAndBindingMappingEXT mappings[] = {InAtConstant(), OutAtAddress(),
                                                            BlockInPushData()};
    const VkPipeline captured = TryHeapPipeline(spirv::kHeapMapped, mappings, VK_NULL_HANDLE,
                                                VK_PIPELINE_CREATE_2_CAPTURE_DATA_BIT_KHR);
    ASSERT_NE(captured, VK_NULL_HANDLE);
    const VkPipelineBinaryCreateInfoKHR create{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_BINARY_CREATE_INFO_KHR, .pipeline = captured};
    VkPipelineBinaryKHR binary = VK_NULL_HANDLE;
    VkPipelineBinaryHandlesInfoKHR handles{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_BINARY_HANDLES_INFO_KHR,
        .pipelineBinaryCount = 1,
        .pPipelineBinaries = &binary};
    ASSERT_VK(vkCreatePipelineBinariesKHR(device_, &create, nullptr, &handles));
    AtEnd([this, binary] { vkDestroyPipelineBinaryKHR(device_, binary, nullptr); });
    const VkPipelineBinaryInfoKHR binaries{.sType = VK_STRUCTURE_TYPE_PIPELINE_BINARY_INFO_KHR,
                                           .binaryCount = 1,
                                           .pPipelineBinaries = &binary};
    VkPipelineCreateFlags2CreateInfo flags{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CREATE_FLAGS_2_CREATE_INFO,
        .pNext = &binaries,
        .flags = VK_PIPELINE_CREATE_2_DESCRIPTOR_HEAP_BIT_EXT};
    const VkComputePipelineCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .pNext = &flags,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .pName = "main"}};
    VkPipeline pipeline = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline));
    AtEnd([this, pipeline] { vkDestroyPipeline(device_, pipeline, nullptr); });
    RunMapped(pipeline);
}

// Binaries carry the embedded samplers, so their keys tell these apart.
TEST_F(HeapObjectsTest, KeysOfPipelinesKnowEmbeddedSamplers) {
    const auto key = [&](VkFilter filter) {
        const VkSamplerCreateInfo sampler{.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                                          .magFilter = filter,
                                          .maxLod = VK_LOD_CLAMP_NONE};
        VkDescriptorSetAndBindingMappingEXT mappings[] = {InAtConstant(), OutAtAddress(),
                                                          BlockInPushData()};
        mappings[0].sourceData.constantOffset.pEmbeddedSampler = &sampler;
        const VkShaderDescriptorSetAndBindingMappingInfoEXT mapping_info{
            .sType = VK_STRUCTURE_TYPE_SHADER_DESCRIPTOR_SET_AND_BINDING_MAPPING_INFO_EXT,
            .mappingCount = 3,
            .pMappings = mappings};
        const VkShaderModuleCreateInfo module_info{
            .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
            .pNext = &mapping_info,
            .codeSize = sizeof(spirv::kHeapMapped),
            .pCode = spirv::kHeapMapped};
        const VkPipelineCreateFlags2CreateInfo flags{
            .sType = VK_STRUCTURE_TYPE_PIPELINE_CREATE_FLAGS_2_CREATE_INFO,
            .flags = VK_PIPELINE_CREATE_2_DESCRIPTOR_HEAP_BIT_EXT};
        VkComputePipelineCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
            .pNext = &flags,
            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                      .pNext = &module_info,
                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                      .pName = "main"}};
        const VkPipelineCreateInfoKHR outer{.sType = VK_STRUCTURE_TYPE_PIPELINE_CREATE_INFO_KHR,
                                            .pNext = &info};
        VkPipelineBinaryKeyKHR made{.sType = VK_STRUCTURE_TYPE_PIPELINE_BINARY_KEY_KHR};
        EXPECT_VK(vkGetPipelineKeyKHR(device_, &outer, &made));
        return std::vector<uint8_t>(made.key, made.key + made.keySize);
    };
    EXPECT_EQ(key(VK_FILTER_LINEAR), key(VK_FILTER_LINEAR));
    EXPECT_NE(key(VK_FILTER_LINEAR), key(VK_FILTER_NEAREST));
}

}  // namespace
}  // namespace fornax::test

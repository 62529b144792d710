// Descriptor buffers: sets that the application writes into memory of its own.
#include <array>
#include <cstdlib>
#include <numeric>

#include "tests/loader/shaders/add.spv.h"
#include "tests/loader/shaders/inline_block.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

class DescriptorBufferTest : public VulkanTest {
  protected:
    void SetUp() override {
        api_version_ = VK_API_VERSION_1_3;
        more_extensions_ = {VK_EXT_DESCRIPTOR_BUFFER_EXTENSION_NAME,
                            VK_EXT_ROBUSTNESS_2_EXTENSION_NAME};
        more_features_ = &buffers_;
        buffers_.pNext = &addresses_;
        addresses_.pNext = &inline_blocks_;
        inline_blocks_.pNext = &robustness_;
        robust_ = true;
        VulkanTest::SetUp();
        if (HasFatalFailure()) {
            return;
        }
        VkPhysicalDeviceProperties2 all{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                        .pNext = &properties_};
        vkGetPhysicalDeviceProperties2(physical_, &all);
        sets_ = MakeAddressable(4096, VK_BUFFER_USAGE_RESOURCE_DESCRIPTOR_BUFFER_BIT_EXT |
                                          VK_BUFFER_USAGE_SAMPLER_DESCRIPTOR_BUFFER_BIT_EXT);
    }

    TestBuffer MakeAddressable(size_t words, VkBufferUsageFlags usage = 0) {
        return MakeBuffer(words, VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | usage);
    }
    VkDeviceAddress AddressOf(const TestBuffer& buffer) {
        const VkBufferDeviceAddressInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                             .buffer = buffer.handle};
        return vkGetBufferDeviceAddress(device_, &info) + buffer.offset;
    }

    VkDescriptorSetLayout MakeLayout(std::span<const VkDescriptorSetLayoutBinding> bindings,
                                     VkDescriptorSetLayoutCreateFlags flags) {
        const VkDescriptorSetLayoutCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .flags = flags,
            .bindingCount = static_cast<uint32_t>(bindings.size()),
            .pBindings = bindings.data()};
        VkDescriptorSetLayout layout = VK_NULL_HANDLE;
        EXPECT_VK(vkCreateDescriptorSetLayout(device_, &info, nullptr, &layout));
        AtEnd([this, layout] { vkDestroyDescriptorSetLayout(device_, layout, nullptr); });
        return layout;
    }
    VkPipelineLayout MakePipelineLayout(std::span<const VkDescriptorSetLayout> sets) {
        const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, 128};
        const VkPipelineLayoutCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
            .setLayoutCount = static_cast<uint32_t>(sets.size()),
            .pSetLayouts = sets.data(),
            .pushConstantRangeCount = 1,
            .pPushConstantRanges = &range};
        VkPipelineLayout layout = VK_NULL_HANDLE;
        EXPECT_VK(vkCreatePipelineLayout(device_, &info, nullptr, &layout));
        AtEnd([this, layout] { vkDestroyPipelineLayout(device_, layout, nullptr); });
        return layout;
    }
    VkPipeline MakeBufferPipeline(std::span<const uint32_t> spirv, VkPipelineLayout layout) {
        const VkShaderModuleCreateInfo module_info{
            .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
            .codeSize = spirv.size_bytes(),
            .pCode = spirv.data()};
        VkShaderModule module = VK_NULL_HANDLE;
        EXPECT_VK(vkCreateShaderModule(device_, &module_info, nullptr, &module));
        const VkComputePipelineCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
            .flags = VK_PIPELINE_CREATE_DESCRIPTOR_BUFFER_BIT_EXT,
            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                      .module = module,
                      .pName = "main"},
            .layout = layout};
        VkPipeline pipeline = VK_NULL_HANDLE;
        EXPECT_VK(vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline));
        vkDestroyShaderModule(device_, module, nullptr);
        AtEnd([this, pipeline] { vkDestroyPipeline(device_, pipeline, nullptr); });
        return pipeline;
    }

    VkDeviceSize OffsetOf(VkDescriptorSetLayout layout, uint32_t binding) {
        VkDeviceSize offset = 0;
        vkGetDescriptorSetLayoutBindingOffsetEXT(device_, layout, binding, &offset);
        return offset;
    }
    std::byte* SetMemory(VkDeviceSize offset) {
        return reinterpret_cast<std::byte*>(sets_.words) + offset;
    }
    // A null buffer gives the null descriptor.
    void PutStorageBuffer(const TestBuffer* buffer, VkDeviceSize offset) {
        const VkDescriptorAddressInfoEXT address{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_ADDRESS_INFO_EXT,
            .address = buffer ? AddressOf(*buffer) : 0,
            .range = buffer ? buffer->size : 0};
        const VkDescriptorGetInfoEXT info{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_GET_INFO_EXT,
                                          .type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                          .data = {.pStorageBuffer = buffer ? &address : nullptr}};
        // The property for robustBufferAccess, which is on.
        vkGetDescriptorEXT(device_, &info, properties_.robustStorageBufferDescriptorSize,
                           SetMemory(offset));
    }
    void BindBuffer(VkCommandBuffer commands) {
        const VkDescriptorBufferBindingInfoEXT info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_BUFFER_BINDING_INFO_EXT,
            .address = AddressOf(sets_),
            .usage = VK_BUFFER_USAGE_RESOURCE_DESCRIPTOR_BUFFER_BIT_EXT |
                     VK_BUFFER_USAGE_SAMPLER_DESCRIPTOR_BUFFER_BIT_EXT};
        vkCmdBindDescriptorBuffersEXT(commands, 1, &info);
    }

    static constexpr VkDescriptorSetLayoutCreateFlags kBufferFlag =
        VK_DESCRIPTOR_SET_LAYOUT_CREATE_DESCRIPTOR_BUFFER_BIT_EXT;
    TestBuffer sets_;
    VkPhysicalDeviceDescriptorBufferPropertiesEXT properties_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_BUFFER_PROPERTIES_EXT};
    VkPhysicalDeviceDescriptorBufferFeaturesEXT buffers_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_BUFFER_FEATURES_EXT,
        .descriptorBuffer = VK_TRUE,
        .descriptorBufferPushDescriptors = VK_TRUE};
    VkPhysicalDeviceBufferDeviceAddressFeatures addresses_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
        .bufferDeviceAddress = VK_TRUE};
    VkPhysicalDeviceInlineUniformBlockFeatures inline_blocks_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_INLINE_UNIFORM_BLOCK_FEATURES,
        .inlineUniformBlock = VK_TRUE};
    VkPhysicalDeviceRobustness2FeaturesEXT robustness_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT,
        .nullDescriptor = VK_TRUE};
};

constexpr VkDescriptorSetLayoutBinding Binding(uint32_t binding,
                                               VkDescriptorType type,
                                               uint32_t count = 1) {
    return {binding, type, count, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
}

// The limits of the extension ("Required Limits").
TEST_F(DescriptorBufferTest, PropertiesAreWithinTheRequiredLimits) {
    EXPECT_LE(properties_.descriptorBufferOffsetAlignment, 256u);
    EXPECT_GE(properties_.maxDescriptorBufferBindings, 3u);
    EXPECT_GE(properties_.maxResourceDescriptorBufferBindings, 1u);
    EXPECT_GE(properties_.maxSamplerDescriptorBufferBindings, 1u);
    EXPECT_GE(properties_.maxEmbeddedImmutableSamplerBindings, 1u);
    EXPECT_GE(properties_.maxEmbeddedImmutableSamplers, 2032u);
    EXPECT_LE(properties_.combinedImageSamplerDescriptorSize, 256u);
    EXPECT_LE(properties_.storageImageDescriptorSize, 256u);
    EXPECT_GE(properties_.maxSamplerDescriptorBufferRange,
              2048u * properties_.samplerDescriptorSize);
    EXPECT_GE(properties_.descriptorBufferAddressSpaceSize, VkDeviceSize{1} << 27);
}

TEST_F(DescriptorBufferTest, OffsetsChooseTheSet) {
    const VkDescriptorSetLayoutBinding bindings[] = {Binding(0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER),
                                                     Binding(1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER)};
    const VkDescriptorSetLayout set = MakeLayout(bindings, kBufferFlag);
    const VkPipelineLayout layout = MakePipelineLayout({&set, 1});
    const VkPipeline pipeline = MakeBufferPipeline(spirv::kAdd, layout);
    const TestBuffer in = MakeAddressable(32);
    const TestBuffer first = MakeAddressable(32);
    const TestBuffer second = MakeAddressable(32);
    std::iota(in.span().begin(), in.span().end(), 500u);
    VkDeviceSize size = 0;
    vkGetDescriptorSetLayoutSizeEXT(device_, set, &size);
    EXPECT_GE(size, 2 * properties_.storageBufferDescriptorSize);
    const VkDeviceSize alignment = properties_.descriptorBufferOffsetAlignment;
    const VkDeviceSize next = (size + alignment - 1) / alignment * alignment;
    PutStorageBuffer(&in, OffsetOf(set, 0));
    PutStorageBuffer(&first, OffsetOf(set, 1));
    PutStorageBuffer(nullptr, next + OffsetOf(set, 0));
    PutStorageBuffer(&second, next + OffsetOf(set, 1));

    VkCommandBuffer commands = Begin();
    BindBuffer(commands);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    const uint32_t constants[] = {9, 32};
    vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(constants),
                       constants);
    for (const VkDeviceSize offset : {VkDeviceSize{0}, next}) {
        const uint32_t buffer = 0;
        vkCmdSetDescriptorBufferOffsetsEXT(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1,
                                           &buffer, &offset);
        vkCmdDispatch(commands, 1, 1, 1);
    }
    Run(commands);
    for (uint32_t i = 0; i < 32; ++i) {
        EXPECT_EQ(first.words[i], 509 + i);
        EXPECT_EQ(second.words[i], 9u);  // the null descriptor reads zeros
    }
}

// The bytes of an inline block lie at its offset; a pushed set goes beside the one in a buffer.
TEST_F(DescriptorBufferTest, InlineBlocksAndPushedSets) {
    const VkDescriptorSetLayoutBinding blocks[] = {
        Binding(0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER),
        Binding(1, VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK, 32)};
    const VkDescriptorSetLayoutBinding pushed[] = {Binding(0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER)};
    const VkDescriptorSetLayout sets[] = {
        MakeLayout(blocks, kBufferFlag),
        MakeLayout(pushed, kBufferFlag | VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT)};
    const VkPipelineLayout layout = MakePipelineLayout(sets);
    const VkPipeline pipeline = MakeBufferPipeline(spirv::kInlineBlock, layout);
    const TestBuffer out = MakeAddressable(32);
    const TestBuffer in = MakeAddressable(32);
    std::iota(in.span().begin(), in.span().end(), 0u);
    const VkDeviceSize alignment = properties_.descriptorBufferOffsetAlignment;
    const VkDeviceSize place = 3 * alignment;
    PutStorageBuffer(&out, place + OffsetOf(sets[0], 0));
    const uint32_t block[] = {1000, 0, 0, 0, 1, 2, 3, 4};
    std::memcpy(SetMemory(place + OffsetOf(sets[0], 1)), block, sizeof(block));

    VkCommandBuffer commands = Begin();
    BindBuffer(commands);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    const uint32_t buffer = 0;
    vkCmdSetDescriptorBufferOffsetsEXT(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1,
                                       &buffer, &place);
    const VkDescriptorBufferInfo info = in.info();
    const VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                     .dstBinding = 0,
                                     .descriptorCount = 1,
                                     .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                     .pBufferInfo = &info};
    vkCmdPushDescriptorSetKHR(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 1, 1, &write);
    vkCmdDispatch(commands, 1, 1, 1);
    Run(commands);
    for (uint32_t i = 0; i < 32; ++i) {
        EXPECT_EQ(out.words[i], 1000 + i + 1 + i % 4) << i;
    }
}

}  // namespace
}  // namespace fornax::test

// Arrays of descriptors through the loader: indices that differ between invocations, run-time
// arrays of variable count, updates after binding, null descriptors, inline uniform blocks and the
// exact bounds of robust access; and robustness that a pipeline asks for itself.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include "tests/loader/shaders/descriptor_indexing.spv.h"
#include "tests/loader/shaders/robust.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

class DescriptorIndexingTest : public VulkanTest {
  protected:
    static constexpr uint32_t kMostBuffers = 64;
    static constexpr uint32_t kBuffers = 5;  // in the set
    static constexpr uint32_t kNull = 3;     // the one without a buffer

    void SetUp() override {
        robust_ = true;
        core_features_.shaderStorageBufferArrayDynamicIndexing = VK_TRUE;
        core_features_.shaderUniformBufferArrayDynamicIndexing = VK_TRUE;
        more_extensions_ = {VK_EXT_DESCRIPTOR_INDEXING_EXTENSION_NAME,
                            VK_EXT_INLINE_UNIFORM_BLOCK_EXTENSION_NAME,
                            VK_EXT_ROBUSTNESS_2_EXTENSION_NAME};
        more_features_ = &indexing_;
        VulkanTest::SetUp();
    }

    VkPhysicalDeviceRobustness2FeaturesEXT robustness_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT,
        .robustBufferAccess2 = VK_TRUE,
        .nullDescriptor = VK_TRUE};
    VkPhysicalDeviceInlineUniformBlockFeatures blocks_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_INLINE_UNIFORM_BLOCK_FEATURES,
        .pNext = &robustness_,
        .inlineUniformBlock = VK_TRUE};
    VkPhysicalDeviceDescriptorIndexingFeatures indexing_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_FEATURES,
        .pNext = &blocks_,
        .shaderUniformBufferArrayNonUniformIndexing = VK_TRUE,
        .shaderStorageBufferArrayNonUniformIndexing = VK_TRUE,
        .descriptorBindingStorageBufferUpdateAfterBind = VK_TRUE,
        .descriptorBindingPartiallyBound = VK_TRUE,
        .descriptorBindingVariableDescriptorCount = VK_TRUE,
        .runtimeDescriptorArray = VK_TRUE};
};

TEST_F(DescriptorIndexingTest, EachInvocationHasABufferOfItsOwn) {
    const std::array layouts = {
        VkDescriptorSetLayoutBinding{0, VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK, 64,
                                     VK_SHADER_STAGE_COMPUTE_BIT},
        VkDescriptorSetLayoutBinding{1, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 5,
                                     VK_SHADER_STAGE_COMPUTE_BIT},
        VkDescriptorSetLayoutBinding{2, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                     VK_SHADER_STAGE_COMPUTE_BIT},
        VkDescriptorSetLayoutBinding{3, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kMostBuffers,
                                     VK_SHADER_STAGE_COMPUTE_BIT}};
    const VkDescriptorBindingFlags flags[] = {
        0, 0, 0,
        VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT | VK_DESCRIPTOR_BINDING_PARTIALLY_BOUND_BIT |
            VK_DESCRIPTOR_BINDING_VARIABLE_DESCRIPTOR_COUNT_BIT};
    const VkDescriptorSetLayoutBindingFlagsCreateInfo binding_flags{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO,
        .bindingCount = std::size(flags),
        .pBindingFlags = flags};
    const VkDescriptorSetLayoutCreateInfo layout_info{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .pNext = &binding_flags,
        .flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_UPDATE_AFTER_BIND_POOL_BIT,
        .bindingCount = layouts.size(),
        .pBindings = layouts.data()};
    VkDescriptorSetVariableDescriptorCountLayoutSupport most{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_VARIABLE_DESCRIPTOR_COUNT_LAYOUT_SUPPORT};
    VkDescriptorSetLayoutSupport support{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_SUPPORT,
                                         .pNext = &most};
    vkGetDescriptorSetLayoutSupport(device_, &layout_info, &support);
    EXPECT_TRUE(support.supported);
    EXPECT_GE(most.maxVariableDescriptorCount, 1000u);

    TestPipeline made = MakePipelineWith(spirv::kDescriptorIndexing, layout_info);
    const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK, 64},
                                          {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 5},
                                          {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1 + kBuffers}};
    const VkDescriptorPoolInlineUniformBlockCreateInfo pool_blocks{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_INLINE_UNIFORM_BLOCK_CREATE_INFO,
        .maxInlineUniformBlockBindings = 1};
    const VkDescriptorPoolCreateInfo pool_info{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .pNext = &pool_blocks,
        .flags = VK_DESCRIPTOR_POOL_CREATE_UPDATE_AFTER_BIND_BIT,
        .maxSets = 1,
        .poolSizeCount = std::size(sizes),
        .pPoolSizes = sizes};
    ASSERT_VK(vkCreateDescriptorPool(device_, &pool_info, nullptr, &made.pool));
    AtEnd([this, made] { vkDestroyDescriptorPool(device_, made.pool, nullptr); });
    const uint32_t counts[] = {kBuffers};
    const VkDescriptorSetVariableDescriptorCountAllocateInfo variable{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_VARIABLE_DESCRIPTOR_COUNT_ALLOCATE_INFO,
        .descriptorSetCount = 1,
        .pDescriptorCounts = counts};
    const VkDescriptorSetAllocateInfo allocate{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .pNext = &variable,
        .descriptorPool = made.pool,
        .descriptorSetCount = 1,
        .pSetLayouts = &made.set_layout};
    ASSERT_VK(vkAllocateDescriptorSets(device_, &allocate, &made.set));

    const TestBuffer out = MakeBuffer(64 * 8);
    std::vector<TestBuffer> uniforms;
    std::vector<TestBuffer> storage;
    std::vector<VkDescriptorBufferInfo> uniform_infos;
    std::vector<VkDescriptorBufferInfo> storage_infos;
    for (uint32_t k = 0; k < kBuffers; ++k) {
        uniforms.push_back(MakeBuffer(4, VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT));
        std::iota(uniforms[k].words, uniforms[k].words + 4, 100 * k);
        uniform_infos.push_back(uniforms[k].info());
        // Two words and 72 pairs, of which the last lacks its second half.
        storage.push_back(MakeBuffer(2 + 2 * 72 + 1));
        for (uint32_t w = 2; w < 2 + 2 * 8; ++w) {
            storage[k].words[w] = 1000 * k + w;
        }
        storage[k].words[2 + 2 * 72] = 77 + k;
        storage_infos.push_back(k == kNull
                                    ? VkDescriptorBufferInfo{VK_NULL_HANDLE, 0, VK_WHOLE_SIZE}
                                    : storage[k].info());
    }
    std::array<uint32_t, 16> inline_words;
    std::iota(inline_words.begin(), inline_words.end(), 500u);
    const VkWriteDescriptorSetInlineUniformBlock block{
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET_INLINE_UNIFORM_BLOCK,
        .dataSize = sizeof(inline_words),
        .pData = inline_words.data()};
    const VkDescriptorBufferInfo out_info = out.info();
    auto write = [&](uint32_t binding, VkDescriptorType type, uint32_t count,
                     const VkDescriptorBufferInfo* infos, const void* next = nullptr) {
        return VkWriteDescriptorSet{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                    .pNext = next,
                                    .dstSet = made.set,
                                    .dstBinding = binding,
                                    .descriptorCount = count,
                                    .descriptorType = type,
                                    .pBufferInfo = infos};
    };
    const std::array before = {
        write(0, VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK, sizeof(inline_words), nullptr, &block),
        write(1, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 5, uniform_infos.data()),
        write(2, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, &out_info)};
    vkUpdateDescriptorSets(device_, before.size(), before.data(), 0, nullptr);

    VkCommandBuffer commands = Begin();
    Bind(commands, made);
    // The index without a uniform decoration is the same everywhere, too.
    const uint32_t push[] = {2, 0};
    vkCmdPushConstants(commands, made.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(push), push);
    vkCmdDispatch(commands, 1, 1, 1);
    Barrier(commands);
    // After the set was bound.
    const VkWriteDescriptorSet after =
        write(3, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kBuffers, storage_infos.data());
    vkUpdateDescriptorSets(device_, 1, &after, 0, nullptr);
    Run(commands);

    std::array<uint32_t, kBuffers> sums = {};
    for (uint32_t i = 0; i < 64; ++i) {
        SCOPED_TRACE(i);
        const uint32_t which = i * 7 % 5;
        const bool null = which == kNull;
        const auto word = [&](uint32_t w) { return null ? 0 : 1000 * which + w; };
        // Invocation 63 writes pair 71 of its buffer, which all of that buffer read or do not.
        const uint32_t* got = out.words + i * 8;
        EXPECT_EQ(got[0], word(2 + 2 * (i & 7) + 1));
        EXPECT_EQ(got[1], 100 * (i % 5) + (i & 3));
        EXPECT_EQ(got[2], null ? 0u : 72u);
        EXPECT_EQ(got[3], 500 + (i & 3) * 4 + (i >> 2 & 3));
        EXPECT_EQ(got[4], 2004u + 201u);
        if (i & 1) {
            // Half of the pair lies inside: each component is by itself.
            EXPECT_EQ(got[5], null ? 0u : 77 + which);
            EXPECT_EQ(got[6], 0u);
        }
        EXPECT_EQ(got[7], word(2));
        sums[which] += i;
        if (!null) {
            EXPECT_EQ(storage[which].words[2 + 2 * (8 + i)], i);
            EXPECT_EQ(storage[which].words[2 + 2 * (8 + i) + 1], 2 * i);
        }
    }
    for (uint32_t k = 0; k < kBuffers; ++k) {
        EXPECT_EQ(storage[k].words[0], k == kNull ? 0 : sums[k]);
    }

    // Indices far outside of the set: any of its descriptors, and nothing else in memory.
    commands = Begin();
    Bind(commands, made);
    const uint32_t far[] = {2, 0x7fffff00};
    vkCmdPushConstants(commands, made.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(far), far);
    vkCmdDispatch(commands, 1, 1, 1);
    Barrier(commands);
    Run(commands);
    for (uint32_t i = 0; i < 64; ++i) {
        EXPECT_EQ(out.words[i * 8 + 7], 1000 * (kBuffers - 1) + 2) << i;
    }
}

class PipelineRobustnessTest : public VulkanTest {
  protected:
    void SetUp() override {
        more_extensions_ = {VK_EXT_PIPELINE_ROBUSTNESS_EXTENSION_NAME};
        more_features_ = &robustness_;
        VulkanTest::SetUp();
    }
    VkPhysicalDevicePipelineRobustnessFeatures robustness_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_ROBUSTNESS_FEATURES,
        .pipelineRobustness = VK_TRUE};

    void ExpectBounds() {
        std::array buffers = {MakeBuffer(100), MakeBuffer(300)};
        std::iota(buffers[0].words, buffers[0].words + 100, 1u);
        Run(MakePipeline(spirv::kRobust, buffers), 3);
        const auto in = [&](uint32_t k) { return k < 100 ? k + 1 : 0; };
        for (uint32_t i = 0; i < 192; ++i) {
            // Invocation 0 writes word 64 again, at any time.
            const uint32_t sum = in(i) + in(i * 1000) + in(i ^ 0x3fffffffu);
            if (i != 64) {
                ASSERT_EQ(buffers[1].words[i], sum) << i;
            }
        }
    }
};

// robust.comp goes far outside of its buffers; the device itself is not robust.
TEST_F(PipelineRobustnessTest, APipelineOrAStageAsksForBounds) {
    const VkPipelineRobustnessCreateInfo robust{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_ROBUSTNESS_CREATE_INFO,
        .storageBuffers = VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_ROBUST_BUFFER_ACCESS,
        .uniformBuffers = VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_DEVICE_DEFAULT};
    for (bool on_stage : {false, true}) {
        SCOPED_TRACE(on_stage);
        pipeline_chain_ = on_stage ? nullptr : &robust;
        stage_chain_ = on_stage ? &robust : nullptr;
        ExpectBounds();
    }
}

// ctest's loader.compat.
TEST_F(PipelineRobustnessTest, TheEnvironmentAsksForBounds) {
    const char* compat = std::getenv("FORNAX_COMPAT");
    if (!compat || std::string_view(compat).find("bounds") == std::string_view::npos) {
        GTEST_SKIP() << "By default accesses are as the application asks.";
    }
    ExpectBounds();
}

}  // namespace
}  // namespace fornax::test

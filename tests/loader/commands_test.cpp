// Recording and submission through the loader: transfers, dispatches of every kind, secondary
// command buffers, descriptors, queries and events.
#include <array>
#include <numeric>

#include <gmock/gmock.h>

#include "tests/loader/shaders/add.spv.h"
#include "tests/loader/shaders/count.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

using CommandsTest = VulkanTest;

struct AddConstants {
    uint32_t addend;
    uint32_t count;
};

class AddTest : public VulkanTest {
  protected:
    void SetUp() override {
        VulkanTest::SetUp();
        if (HasFatalFailure()) {
            return;
        }
        in_ = MakeBuffer(100);
        out_ = MakeBuffer(100);
        std::iota(in_.span().begin(), in_.span().end(), 1000u);
        std::array buffers = {in_, out_};
        add_ = MakePipeline(spirv::kAdd, buffers);
    }
    void Push(VkCommandBuffer commands, AddConstants constants) {
        vkCmdPushConstants(commands, add_.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(constants),
                           &constants);
    }
    void Record(VkCommandBuffer commands, uint32_t addend) {
        Bind(commands, add_);
        Push(commands, {addend, 100});
        vkCmdDispatch(commands, 4, 1, 1);
    }
    void ExpectAdded(uint32_t addend, uint32_t scale = 1) {
        for (uint32_t i = 0; i < 100; ++i) {
            ASSERT_EQ(out_.words[i], (1000 + i) * scale + addend) << i;
        }
    }

    TestBuffer in_;
    TestBuffer out_;
    TestPipeline add_;
};

TEST_F(CommandsTest, CopiesFillsAndUpdates) {
    TestBuffer source = MakeBuffer(64);
    TestBuffer target = MakeBuffer(64);
    std::iota(source.span().begin(), source.span().end(), 0u);
    const uint32_t data[] = {7, 8, 9};
    VkCommandBuffer commands = Begin();
    const VkBufferCopy regions[] = {{source.offset, target.offset + 16, 64},
                                    {source.offset + 128, target.offset + 128, 32}};
    vkCmdCopyBuffer(commands, source.handle, target.handle, 2, regions);
    vkCmdFillBuffer(commands, target.handle, target.offset + 192, 16, 0xABCD1234);
    vkCmdUpdateBuffer(commands, target.handle, target.offset + 240, sizeof(data), data);
    Run(commands);
    for (uint32_t i = 0; i < 64; ++i) {
        uint32_t expected = 0;
        if (i >= 4 && i < 20) {
            expected = i - 4;
        } else if (i >= 32 && i < 40) {
            expected = i;
        } else if (i >= 48 && i < 52) {
            expected = 0xABCD1234;
        } else if (i >= 60 && i < 63) {
            expected = i - 53;
        }
        EXPECT_EQ(target.words[i], expected) << i;
    }
}

TEST_F(CommandsTest, LargeCopiesArriveWhole) {
    TestBuffer source = MakeBuffer(3'000'001);
    TestBuffer target = MakeBuffer(3'000'001);
    for (size_t i = 0; i < source.span().size(); ++i) {
        source.words[i] = static_cast<uint32_t>(i * 2654435761u);
    }
    VkCommandBuffer commands = Begin();
    const VkBufferCopy2 region{.sType = VK_STRUCTURE_TYPE_BUFFER_COPY_2,
                               .srcOffset = source.offset,
                               .dstOffset = target.offset,
                               .size = source.size};
    const VkCopyBufferInfo2 copy{.sType = VK_STRUCTURE_TYPE_COPY_BUFFER_INFO_2,
                                 .srcBuffer = source.handle,
                                 .dstBuffer = target.handle,
                                 .regionCount = 1,
                                 .pRegions = &region};
    vkCmdCopyBuffer2KHR(commands, &copy);
    Run(commands);
    EXPECT_EQ(std::memcmp(source.words, target.words, source.size), 0);
}

TEST_F(AddTest, PushConstantsAndRangesLimitTheWork) {
    VkCommandBuffer commands = Begin();
    Bind(commands, add_);
    Push(commands, {5, 50});
    vkCmdDispatch(commands, 4, 1, 1);
    Run(commands);
    for (uint32_t i = 0; i < 100; ++i) {
        EXPECT_EQ(out_.words[i], i < 50 ? 1005 + i : 0) << i;
    }
}

TEST_F(AddTest, SpecializationConstantsAreFrozen) {
    const uint32_t scale = 3;
    const VkSpecializationMapEntry entry{7, 0, sizeof(scale)};
    const VkSpecializationInfo info{1, &entry, sizeof(scale), &scale};
    std::array buffers = {in_, out_};
    add_ = MakePipeline(spirv::kAdd, buffers, &info);
    VkCommandBuffer commands = Begin();
    Record(commands, 4);
    Run(commands);
    ExpectAdded(4, 3);
}

TEST_F(AddTest, SecondaryCommandBuffersRunInPlace) {
    VkCommandBuffer first =
        Begin(VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, VK_COMMAND_BUFFER_LEVEL_SECONDARY);
    Record(first, 1);
    Barrier(first);
    ASSERT_VK(vkEndCommandBuffer(first));
    VkCommandBuffer second = Begin(0, VK_COMMAND_BUFFER_LEVEL_SECONDARY);
    vkCmdFillBuffer(second, out_.handle, out_.offset, 40, 77);
    ASSERT_VK(vkEndCommandBuffer(second));
    VkCommandBuffer commands = Begin();
    const VkCommandBuffer secondaries[] = {first, first, second};
    vkCmdExecuteCommands(commands, 3, secondaries);
    Run(commands);
    for (uint32_t i = 0; i < 100; ++i) {
        EXPECT_EQ(out_.words[i], i < 10 ? 77 : 1001 + i) << i;
    }
}

// "Pipeline Statistics Queries": invocations of compute shaders, those of secondary command buffers
// among them; what a condition or an empty grid leaves out is not.
class StatisticsTest : public AddTest {
  protected:
    void SetUp() override {
        core_features_.pipelineStatisticsQuery = VK_TRUE;
        core_features_.inheritedQueries = VK_TRUE;
        AddTest::SetUp();
    }
};

TEST_F(StatisticsTest, InvocationsAreCounted) {
    constexpr VkQueryPipelineStatisticFlags kInvocations =
        VK_QUERY_PIPELINE_STATISTIC_COMPUTE_SHADER_INVOCATIONS_BIT;
    VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                               .queryType = VK_QUERY_TYPE_PIPELINE_STATISTICS,
                               .queryCount = 3,
                               .pipelineStatistics = kInvocations};
    VkQueryPool pool;
    ASSERT_VK(vkCreateQueryPool(device_, &info, nullptr, &pool));
    AtEnd([this, pool] { vkDestroyQueryPool(device_, pool, nullptr); });
    VkCommandBuffer secondary = Begin(0, VK_COMMAND_BUFFER_LEVEL_SECONDARY);
    ASSERT_VK(vkResetCommandBuffer(secondary, 0));
    VkCommandBufferInheritanceInfo inheritance{
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO,
        .pipelineStatistics = kInvocations};
    VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                   .pInheritanceInfo = &inheritance};
    ASSERT_VK(vkBeginCommandBuffer(secondary, &begin));
    Record(secondary, 1);
    ASSERT_VK(vkEndCommandBuffer(secondary));
    TestBuffer results = MakeBuffer(6);
    VkCommandBuffer commands = Begin();
    vkCmdResetQueryPool(commands, pool, 0, 3);
    Record(commands, 1);  // 4 workgroups of 32
    vkCmdBeginQuery(commands, pool, 0, 0);
    vkCmdDispatch(commands, 0, 1, 1);
    vkCmdEndQuery(commands, pool, 0);
    vkCmdBeginQuery(commands, pool, 1, 0);
    Barrier(commands);
    vkCmdDispatch(commands, 4, 1, 1);
    Barrier(commands);
    vkCmdExecuteCommands(commands, 1, &secondary);
    vkCmdEndQuery(commands, pool, 1);
    Barrier(commands);
    Record(commands, 1);
    vkCmdCopyQueryPoolResults(commands, pool, 0, 2, results.handle, results.offset, 8,
                              VK_QUERY_RESULT_WAIT_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT);
    Run(commands);
    EXPECT_THAT(results.span().first(4), ::testing::ElementsAre(0, 1, 256, 1));
    uint64_t values[3] = {7, 7, 7};
    EXPECT_EQ(vkGetQueryPoolResults(device_, pool, 0, 3, sizeof(values), values, 8,
                                    VK_QUERY_RESULT_64_BIT),
              VK_NOT_READY);
    EXPECT_THAT(values, ::testing::ElementsAre(0, 256, 7));
}

TEST_F(AddTest, CommandBuffersAreResubmittedAndRecordedAgain) {
    VkCommandBuffer commands = Begin(VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
    Record(commands, 2);
    Barrier(commands);
    ASSERT_VK(vkEndCommandBuffer(commands));
    const VkFence fences[] = {MakeFence(), MakeFence()};
    ASSERT_VK(Submit(commands, fences[0]));
    ASSERT_VK(Submit(commands, fences[1]));
    ASSERT_VK(vkWaitForFences(device_, 2, fences, VK_TRUE, UINT64_MAX));
    ExpectAdded(2);
    ASSERT_VK(vkResetCommandBuffer(commands, 0));
    VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    ASSERT_VK(vkBeginCommandBuffer(commands, &begin));
    Record(commands, 9);
    Run(commands);
    ExpectAdded(9);
}

TEST_F(CommandsTest, GridsDirectBaseAndIndirect) {
    TestBuffer out = MakeBuffer(4);
    TestBuffer indirect = MakeBuffer(8, VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT);
    indirect.words[4] = 2;
    indirect.words[5] = 3;
    indirect.words[6] = 4;
    TestPipeline count = MakePipeline(spirv::kCount, {&out, 1});
    auto expect = [&](uint32_t groups, uint32_t x, uint32_t y, uint32_t z) {
        EXPECT_EQ(out.words[0], groups);
        EXPECT_EQ(out.words[1], x);
        EXPECT_EQ(out.words[2], y);
        EXPECT_EQ(out.words[3], z);
        std::fill_n(out.words, 4, 0u);
    };
    Run(count, 5, 6, 7);
    expect(210, 4, 5, 6);
    VkCommandBuffer commands = Begin();
    Bind(commands, count);
    vkCmdDispatchBase(commands, 10, 20, 30, 2, 2, 2);
    Run(commands);
    expect(8, 11, 21, 31);
    commands = Begin();
    Bind(commands, count);
    vkCmdDispatchIndirect(commands, indirect.handle, indirect.offset + 16);
    Run(commands);
    expect(24, 1, 2, 3);
    commands = Begin();
    Bind(commands, count);
    vkCmdDispatch(commands, 0, 3, 3);
    vkCmdDispatch(commands, 100'000, 1, 1);
    Run(commands);
    expect(100'000, 99'999, 0, 0);
}

TEST_F(CommandsTest, DynamicOffsetsAndArraysOfDescriptors) {
    TestBuffer in = MakeBuffer(256);
    TestBuffer out = MakeBuffer(100);
    std::iota(in.span().begin(), in.span().end(), 0u);
    const VkDescriptorSetLayoutBinding bindings[] = {
        {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC, 1, VK_SHADER_STAGE_COMPUTE_BIT},
        {1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT}};
    VkDescriptorSetLayoutCreateInfo layout_info{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 2,
        .pBindings = bindings};
    VkDescriptorSetLayout set_layout;
    ASSERT_VK(vkCreateDescriptorSetLayout(device_, &layout_info, nullptr, &set_layout));
    VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(AddConstants)};
    VkPipelineLayoutCreateInfo pipeline_layout_info{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &range};
    VkPipelineLayout layout;
    ASSERT_VK(vkCreatePipelineLayout(device_, &pipeline_layout_info, nullptr, &layout));
    VkShaderModuleCreateInfo module_info{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                         .codeSize = sizeof(spirv::kAdd),
                                         .pCode = spirv::kAdd};
    VkShaderModule module;
    ASSERT_VK(vkCreateShaderModule(device_, &module_info, nullptr, &module));
    VkComputePipelineCreateInfo pipeline_info{
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main"},
        .layout = layout};
    VkPipeline pipeline;
    ASSERT_VK(vkCreateComputePipelines(device_, {}, 1, &pipeline_info, nullptr, &pipeline));
    const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC, 1},
                                          {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1}};
    VkDescriptorPoolCreateInfo pool_info{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                         .maxSets = 1,
                                         .poolSizeCount = 2,
                                         .pPoolSizes = sizes};
    VkDescriptorPool pool;
    ASSERT_VK(vkCreateDescriptorPool(device_, &pool_info, nullptr, &pool));
    VkDescriptorSetAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                         .descriptorPool = pool,
                                         .descriptorSetCount = 1,
                                         .pSetLayouts = &set_layout};
    VkDescriptorSet set;
    ASSERT_VK(vkAllocateDescriptorSets(device_, &allocate, &set));
    const VkDescriptorBufferInfo infos[] = {{in.handle, in.offset, 400}, out.info()};
    VkWriteDescriptorSet writes[2] = {};
    for (uint32_t i = 0; i < 2; ++i) {
        writes[i] = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                     .dstSet = set,
                     .dstBinding = i,
                     .descriptorCount = 1,
                     .descriptorType = bindings[i].descriptorType,
                     .pBufferInfo = &infos[i]};
    }
    vkUpdateDescriptorSets(device_, 2, writes, 0, nullptr);
    for (uint32_t offset : {0u, 256u}) {
        VkCommandBuffer commands = Begin();
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 1,
                                &offset);
        const AddConstants constants{1, 100};
        vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(constants),
                           &constants);
        vkCmdDispatch(commands, 4, 1, 1);
        Run(commands);
        for (uint32_t i = 0; i < 100; ++i) {
            ASSERT_EQ(out.words[i], offset / 4 + i + 1) << i;
        }
    }
    vkDestroyDescriptorPool(device_, pool, nullptr);
    vkDestroyPipeline(device_, pipeline, nullptr);
    vkDestroyShaderModule(device_, module, nullptr);
    vkDestroyPipelineLayout(device_, layout, nullptr);
    vkDestroyDescriptorSetLayout(device_, set_layout, nullptr);
}

TEST_F(AddTest, TimestampsCountUpAndAreCopied) {
    VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                               .queryType = VK_QUERY_TYPE_TIMESTAMP,
                               .queryCount = 4};
    VkQueryPool pool;
    ASSERT_VK(vkCreateQueryPool(device_, &info, nullptr, &pool));
    vkResetQueryPoolEXT(device_, pool, 0, 4);
    uint64_t values[8] = {};
    EXPECT_EQ(vkGetQueryPoolResults(device_, pool, 0, 2, sizeof(values), values, 8,
                                    VK_QUERY_RESULT_64_BIT),
              VK_NOT_READY);
    TestBuffer copied = MakeBuffer(8);
    VkCommandBuffer commands = Begin();
    vkCmdResetQueryPool(commands, pool, 0, 4);
    vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, pool, 0);
    Record(commands, 3);
    vkCmdWriteTimestamp2KHR(commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, pool, 1);
    vkCmdCopyQueryPoolResults(
        commands, pool, 0, 2, copied.handle, copied.offset, 16,
        VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT | VK_QUERY_RESULT_WAIT_BIT);
    Run(commands);
    ASSERT_VK(vkGetQueryPoolResults(
        device_, pool, 0, 2, 32, values, 16,
        VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT));
    EXPECT_LT(values[0], values[2]);
    EXPECT_NE(values[1], 0u);
    EXPECT_NE(values[3], 0u);
    EXPECT_EQ(std::memcmp(values, copied.words, 32), 0);
    // Query 2 was reset and never written.
    EXPECT_EQ(vkGetQueryPoolResults(device_, pool, 1, 2, 16, values, 8, VK_QUERY_RESULT_64_BIT),
              VK_NOT_READY);
    vkDestroyQueryPool(device_, pool, nullptr);
}

// VUID-vkSetEvent-event-09543 is younger than programs that set an event which a queue waits for.
TEST_F(AddTest, EventsHoldTheQueueUntilTheyAreSet) {
    VkEventCreateInfo info{.sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};
    VkEvent host_event;
    VkEvent device_event;
    ASSERT_VK(vkCreateEvent(device_, &info, nullptr, &host_event));
    ASSERT_VK(vkCreateEvent(device_, &info, nullptr, &device_event));
    EXPECT_EQ(vkGetEventStatus(device_, host_event), VK_EVENT_RESET);
    VkCommandBuffer commands = Begin();
    vkCmdWaitEvents(commands, 1, &host_event, VK_PIPELINE_STAGE_HOST_BIT,
                    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, nullptr, 0, nullptr, 0, nullptr);
    Record(commands, 6);
    vkCmdSetEvent(commands, device_event, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
    Barrier(commands);
    ASSERT_VK(vkEndCommandBuffer(commands));
    VkFence fence = MakeFence();
    if (Validated()) {
        ASSERT_VK(vkSetEvent(device_, host_event));
    }
    ASSERT_VK(Submit(commands, fence));
    if (!Validated()) {
        EXPECT_EQ(vkWaitForFences(device_, 1, &fence, VK_TRUE, 20'000'000), VK_TIMEOUT);
        EXPECT_EQ(vkGetEventStatus(device_, device_event), VK_EVENT_RESET);
        ASSERT_VK(vkSetEvent(device_, host_event));
    }
    ASSERT_VK(vkWaitForFences(device_, 1, &fence, VK_TRUE, UINT64_MAX));
    EXPECT_EQ(vkGetEventStatus(device_, device_event), VK_EVENT_SET);
    ASSERT_VK(vkResetEvent(device_, device_event));
    EXPECT_EQ(vkGetEventStatus(device_, device_event), VK_EVENT_RESET);
    ExpectAdded(6);
    vkDestroyEvent(device_, host_event, nullptr);
    vkDestroyEvent(device_, device_event, nullptr);
}

TEST_F(AddTest, Synchronization2BarriersAndSubmits) {
    VkCommandBuffer commands = Begin();
    Record(commands, 8);
    const VkMemoryBarrier2 all{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                               .srcStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
                               .srcAccessMask = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT,
                               .dstStageMask = VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT,
                               .dstAccessMask = VK_ACCESS_2_TRANSFER_WRITE_BIT};
    const VkDependencyInfo dependency{.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                      .memoryBarrierCount = 1,
                                      .pMemoryBarriers = &all};
    vkCmdPipelineBarrier2KHR(commands, &dependency);
    vkCmdFillBuffer(commands, out_.handle, out_.offset, 4, 5);
    Barrier(commands);
    ASSERT_VK(vkEndCommandBuffer(commands));
    const VkCommandBufferSubmitInfo buffer{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
                                           .commandBuffer = commands};
    const VkSubmitInfo2 submit{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
                               .commandBufferInfoCount = 1,
                               .pCommandBufferInfos = &buffer};
    VkFence fence = MakeFence();
    ASSERT_VK(vkQueueSubmit2KHR(queues_[0], 1, &submit, fence));
    ASSERT_VK(vkWaitForFences(device_, 1, &fence, VK_TRUE, UINT64_MAX));
    EXPECT_EQ(out_.words[0], 5u);
    out_.words[0] = 1008;
    ExpectAdded(8);
}

}  // namespace
}  // namespace fornax::test

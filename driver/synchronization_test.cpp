// Fences, semaphores, events, queries and lost devices, seen from the host.
#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <thread>

#include "driver/test_commands.h"

namespace fornax::driver_test {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

class SynchronizationTest : public TestCommands {
  protected:
    VkSemaphore MakeSemaphore(VkSemaphoreType type, uint64_t initial = 0) {
        const VkSemaphoreTypeCreateInfo type_info{
            .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
            .semaphoreType = type,
            .initialValue = initial};
        const VkSemaphoreCreateInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                         .pNext = &type_info};
        VkSemaphore semaphore = VK_NULL_HANDLE;
        EXPECT_EQ(vkCreateSemaphore(device_, &info, nullptr, &semaphore), VK_SUCCESS);
        AtEnd([this, semaphore] { vkDestroySemaphore(device_, semaphore, nullptr); });
        return semaphore;
    }

    VkEvent MakeEvent() {
        const VkEventCreateInfo info{.sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};
        VkEvent event = VK_NULL_HANDLE;
        EXPECT_EQ(vkCreateEvent(device_, &info, nullptr, &event), VK_SUCCESS);
        AtEnd([this, event] { vkDestroyEvent(device_, event, nullptr); });
        return event;
    }

    // A command buffer that fills the buffer's first word.
    VkCommandBuffer Writes(const TestBuffer& buffer, uint32_t value) {
        VkCommandBuffer commands = AllocateCommands();
        Begin(commands);
        vkCmdFillBuffer(commands, buffer.buffer, 0, 4, value);
        EXPECT_EQ(vkEndCommandBuffer(commands), VK_SUCCESS);
        return commands;
    }

    VkResult Submit2(const std::vector<VkSemaphoreSubmitInfo>& waits,
                     VkCommandBuffer commands,
                     const std::vector<VkSemaphoreSubmitInfo>& signals,
                     VkFence fence = VK_NULL_HANDLE) {
        const VkCommandBufferSubmitInfo command_info{
            .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = commands};
        const VkSubmitInfo2 info{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
                                 .waitSemaphoreInfoCount = static_cast<uint32_t>(waits.size()),
                                 .pWaitSemaphoreInfos = waits.data(),
                                 .commandBufferInfoCount = commands ? 1u : 0u,
                                 .pCommandBufferInfos = &command_info,
                                 .signalSemaphoreInfoCount = static_cast<uint32_t>(signals.size()),
                                 .pSignalSemaphoreInfos = signals.data()};
        return vkQueueSubmit2KHR(queue_, 1, &info, fence);
    }

    static VkSemaphoreSubmitInfo At(VkSemaphore semaphore, uint64_t value = 0) {
        return {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                .semaphore = semaphore,
                .value = value,
                .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT};
    }

    VkResult WaitFor(VkSemaphore semaphore, uint64_t value, uint64_t timeout_ns) {
        const VkSemaphoreWaitInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                       .semaphoreCount = 1,
                                       .pSemaphores = &semaphore,
                                       .pValues = &value};
        return vkWaitSemaphoresKHR(device_, &info, timeout_ns);
    }

    VkResult SignalTo(VkSemaphore semaphore, uint64_t value) {
        const VkSemaphoreSignalInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                         .semaphore = semaphore,
                                         .value = value};
        return vkSignalSemaphoreKHR(device_, &info);
    }
};

TEST_F(SynchronizationTest, FencesFollowTheirSubmission) {
    VkFence fence = MakeFence();
    VkFence signalled = MakeFence(VK_FENCE_CREATE_SIGNALED_BIT);
    EXPECT_EQ(vkGetFenceStatus(device_, fence), VK_NOT_READY);
    EXPECT_EQ(vkGetFenceStatus(device_, signalled), VK_SUCCESS);
    EXPECT_EQ(vkWaitForFences(device_, 1, &fence, VK_TRUE, 0), VK_TIMEOUT);
    const VkFence both[] = {fence, signalled};
    EXPECT_EQ(vkWaitForFences(device_, 2, both, VK_TRUE, 1'000'000), VK_TIMEOUT);
    EXPECT_EQ(vkWaitForFences(device_, 2, both, VK_FALSE, kSecond), VK_SUCCESS);

    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(vkQueueSubmit(queue_, 0, nullptr, fence), VK_SUCCESS);
        EXPECT_EQ(vkWaitForFences(device_, 2, both, VK_TRUE, kSecond), VK_SUCCESS);
        EXPECT_EQ(vkGetFenceStatus(device_, fence), VK_SUCCESS);
        ASSERT_EQ(vkResetFences(device_, 1, &fence), VK_SUCCESS);
        EXPECT_EQ(vkGetFenceStatus(device_, fence), VK_NOT_READY);
    }
}

// From some polls on each waits a little; none waits for longer, and none misses the signal.
TEST_F(SynchronizationTest, FencesCanBePolled) {
    const VkFence fence = MakeFence();
    const VkSemaphore semaphore = MakeSemaphore(VK_SEMAPHORE_TYPE_TIMELINE);
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    for (uint64_t reached = 1; reached <= 2; ++reached) {
        const VkTimelineSemaphoreSubmitInfo values{
            .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
            .waitSemaphoreValueCount = 1,
            .pWaitSemaphoreValues = &reached};
        const VkSubmitInfo submit{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                  .pNext = &values,
                                  .waitSemaphoreCount = 1,
                                  .pWaitSemaphores = &semaphore,
                                  .pWaitDstStageMask = &stage};
        ASSERT_EQ(vkQueueSubmit(queue_, 1, &submit, fence), VK_SUCCESS);
        for (int i = 0; i < 200; ++i) {
            ASSERT_EQ(vkGetFenceStatus(device_, fence), VK_NOT_READY);
        }
        std::thread signal([&] { EXPECT_EQ(SignalTo(semaphore, reached), VK_SUCCESS); });
        while (vkGetFenceStatus(device_, fence) == VK_NOT_READY) {
        }
        signal.join();
        EXPECT_EQ(vkGetFenceStatus(device_, fence), VK_SUCCESS);
        ASSERT_EQ(vkResetFences(device_, 1, &fence), VK_SUCCESS);
    }
}

TEST_F(SynchronizationTest, BinarySemaphoresCanBeUsedAgain) {
    VkSemaphore semaphore = MakeSemaphore(VK_SEMAPHORE_TYPE_BINARY);
    TestBuffer buffer = MakeBuffer(16);
    for (uint32_t i = 1; i <= 50; ++i) {
        ASSERT_EQ(Submit2({}, Writes(buffer, 2 * i), {At(semaphore)}), VK_SUCCESS);
        VkFence fence = MakeFence();
        ASSERT_EQ(Submit2({At(semaphore)}, Writes(buffer, 2 * i + 1), {}, fence), VK_SUCCESS);
        ASSERT_EQ(vkWaitForFences(device_, 1, &fence, VK_TRUE, 10 * kSecond), VK_SUCCESS);
        EXPECT_EQ(buffer.as<uint32_t>()[0], 2 * i + 1);
    }
}

// A timeline's wait may be submitted before its signal (VK_KHR_timeline_semaphore).
TEST_F(SynchronizationTest, TimelineWaitsCanComeBeforeSignals) {
    VkSemaphore semaphore = MakeSemaphore(VK_SEMAPHORE_TYPE_TIMELINE, 5);
    uint64_t value = 0;
    ASSERT_EQ(vkGetSemaphoreCounterValueKHR(device_, semaphore, &value), VK_SUCCESS);
    EXPECT_EQ(value, 5u);
    TestBuffer buffer = MakeBuffer(16);
    ASSERT_EQ(Submit2({At(semaphore, 7)}, Writes(buffer, 1), {At(semaphore, 9)}), VK_SUCCESS);
    EXPECT_EQ(WaitFor(semaphore, 9, 5'000'000), VK_TIMEOUT);
    EXPECT_EQ(buffer.as<uint32_t>()[0], 0u);
    ASSERT_EQ(SignalTo(semaphore, 7), VK_SUCCESS);
    EXPECT_EQ(WaitFor(semaphore, 9, 10 * kSecond), VK_SUCCESS);
    EXPECT_EQ(buffer.as<uint32_t>()[0], 1u);
    ASSERT_EQ(vkGetSemaphoreCounterValueKHR(device_, semaphore, &value), VK_SUCCESS);
    EXPECT_EQ(value, 9u);
}

// The values of vkQueueSubmit come in a chained structure.
TEST_F(SynchronizationTest, TimelineValuesOfTheOldSubmission) {
    VkSemaphore semaphore = MakeSemaphore(VK_SEMAPHORE_TYPE_TIMELINE);
    const uint64_t wait = 1;
    const uint64_t signal = 2;
    const VkTimelineSemaphoreSubmitInfo values{
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = 1,
        .pWaitSemaphoreValues = &wait,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &signal};
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    const VkSubmitInfo info{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                            .pNext = &values,
                            .waitSemaphoreCount = 1,
                            .pWaitSemaphores = &semaphore,
                            .pWaitDstStageMask = &stage,
                            .signalSemaphoreCount = 1,
                            .pSignalSemaphores = &semaphore};
    ASSERT_EQ(vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), VK_SUCCESS);
    EXPECT_EQ(WaitFor(semaphore, 2, 1'000'000), VK_TIMEOUT);
    ASSERT_EQ(SignalTo(semaphore, 1), VK_SUCCESS);
    EXPECT_EQ(WaitFor(semaphore, 2, 10 * kSecond), VK_SUCCESS);
}

TEST_F(SynchronizationTest, WaitingForAnyOfSeveralTimelines) {
    const VkSemaphore semaphores[] = {MakeSemaphore(VK_SEMAPHORE_TYPE_TIMELINE),
                                      MakeSemaphore(VK_SEMAPHORE_TYPE_TIMELINE)};
    const uint64_t values[] = {1, 1};
    VkSemaphoreWaitInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                             .semaphoreCount = 2,
                             .pSemaphores = semaphores,
                             .pValues = values};
    std::thread signaller([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        EXPECT_EQ(SignalTo(semaphores[1], 1), VK_SUCCESS);
    });
    EXPECT_EQ(vkWaitSemaphoresKHR(device_, &info, 0), VK_TIMEOUT);
    info.flags = VK_SEMAPHORE_WAIT_ANY_BIT;
    EXPECT_EQ(vkWaitSemaphoresKHR(device_, &info, 10 * kSecond), VK_SUCCESS);
    signaller.join();
}

TEST_F(SynchronizationTest, EventsHoldTheDeviceUntilTheHostSetsThem) {
    VkEvent from_host = MakeEvent();
    VkEvent from_device = MakeEvent();
    TestBuffer buffer = MakeBuffer(16);
    EXPECT_EQ(vkGetEventStatus(device_, from_host), VK_EVENT_RESET);
    Begin(commands_);
    vkCmdWaitEvents(commands_, 1, &from_host, VK_PIPELINE_STAGE_HOST_BIT,
                    VK_PIPELINE_STAGE_TRANSFER_BIT, 0, nullptr, 0, nullptr, 0, nullptr);
    vkCmdFillBuffer(commands_, buffer.buffer, 0, 4, 3);
    vkCmdSetEvent(commands_, from_device, VK_PIPELINE_STAGE_TRANSFER_BIT);
    ASSERT_EQ(vkEndCommandBuffer(commands_), VK_SUCCESS);
    VkFence fence = MakeFence();
    ASSERT_EQ(Submit(commands_, fence), VK_SUCCESS);
    EXPECT_EQ(vkWaitForFences(device_, 1, &fence, VK_TRUE, 5'000'000), VK_TIMEOUT);
    EXPECT_EQ(vkGetEventStatus(device_, from_device), VK_EVENT_RESET);
    EXPECT_EQ(buffer.as<uint32_t>()[0], 0u);
    ASSERT_EQ(vkSetEvent(device_, from_host), VK_SUCCESS);
    EXPECT_EQ(vkWaitForFences(device_, 1, &fence, VK_TRUE, 10 * kSecond), VK_SUCCESS);
    EXPECT_EQ(vkGetEventStatus(device_, from_device), VK_EVENT_SET);
    EXPECT_EQ(buffer.as<uint32_t>()[0], 3u);
    ASSERT_EQ(vkResetEvent(device_, from_host), VK_SUCCESS);
    EXPECT_EQ(vkGetEventStatus(device_, from_host), VK_EVENT_RESET);
    Run([&](VkCommandBuffer commands) {
        vkCmdResetEvent(commands, from_device, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
    });
    EXPECT_EQ(vkGetEventStatus(device_, from_device), VK_EVENT_RESET);
}

TEST_F(SynchronizationTest, TimestampsGrowAndSayWhenTheyAreThere) {
    const VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                     .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                     .queryCount = 3};
    VkQueryPool pool = VK_NULL_HANDLE;
    ASSERT_EQ(vkCreateQueryPool(device_, &info, nullptr, &pool), VK_SUCCESS);
    AtEnd([this, pool] { vkDestroyQueryPool(device_, pool, nullptr); });
    vkResetQueryPoolEXT(device_, pool, 0, 3);
    TestBuffer results = MakeBuffer(64);
    Run([&](VkCommandBuffer commands) {
        vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, pool, 0);
        vkCmdWriteTimestamp2KHR(commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, pool, 1);
        vkCmdCopyQueryPoolResults(commands, pool, 0, 2, results.buffer, 16, 8,
                                  VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    });
    constexpr auto kFlags = VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT;
    std::array<uint64_t, 6> values = {9, 9, 9, 9, 9, 9};
    EXPECT_EQ(vkGetQueryPoolResults(device_, pool, 0, 3, sizeof(values), values.data(), 16, kFlags),
              VK_NOT_READY);
    EXPECT_EQ(values[1], 1u);
    EXPECT_EQ(values[3], 1u);
    EXPECT_EQ(values[4], 9u);  // not written
    EXPECT_EQ(values[5], 0u);  // not available
    EXPECT_LE(values[0], values[2]);
    EXPECT_EQ(results.as<uint64_t>()[2], values[0]);
    EXPECT_EQ(results.as<uint64_t>()[3], values[2]);
    std::array<uint64_t, 2> two = {};
    EXPECT_EQ(vkGetQueryPoolResults(device_, pool, 0, 2, sizeof(two), two.data(), 8,
                                    VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
              VK_SUCCESS);
    EXPECT_EQ(two[1], values[2]);
    Run([&](VkCommandBuffer commands) { vkCmdResetQueryPool(commands, pool, 0, 1); });
    EXPECT_EQ(vkGetQueryPoolResults(device_, pool, 0, 1, 8, two.data(), 8, VK_QUERY_RESULT_64_BIT),
              VK_NOT_READY);
    // Other statistics need graphics.
    const VkQueryPoolCreateInfo statistics{
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_PIPELINE_STATISTICS,
        .queryCount = 1,
        .pipelineStatistics = VK_QUERY_PIPELINE_STATISTIC_COMPUTE_SHADER_INVOCATIONS_BIT |
                              VK_QUERY_PIPELINE_STATISTIC_VERTEX_SHADER_INVOCATIONS_BIT};
    VkQueryPool other = VK_NULL_HANDLE;
    EXPECT_LT(vkCreateQueryPool(device_, &statistics, nullptr, &other), VK_SUCCESS);
}

// Nothing is drawn, so no samples pass; the query itself works.
TEST_F(SynchronizationTest, OcclusionQueriesCountNothing) {
    const VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                     .queryType = VK_QUERY_TYPE_OCCLUSION,
                                     .queryCount = 2};
    VkQueryPool pool = VK_NULL_HANDLE;
    ASSERT_EQ(vkCreateQueryPool(device_, &info, nullptr, &pool), VK_SUCCESS);
    AtEnd([this, pool] { vkDestroyQueryPool(device_, pool, nullptr); });
    vkResetQueryPoolEXT(device_, pool, 0, 2);
    Run([&](VkCommandBuffer commands) {
        vkCmdBeginQuery(commands, pool, 1, 0);
        vkCmdEndQuery(commands, pool, 1);
    });
    constexpr auto kFlags = VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT;
    std::array<uint64_t, 4> values = {9, 9, 9, 9};
    EXPECT_EQ(vkGetQueryPoolResults(device_, pool, 0, 2, sizeof(values), values.data(), 16, kFlags),
              VK_NOT_READY);
    EXPECT_THAT(values, ::testing::ElementsAre(9, 0, 0, 1));
}

// Two queues run side by side, and semaphores order them.
TEST_F(SynchronizationTest, QueuesWaitForOneAnother) {
    const float priorities[] = {1, 1};
    const VkDeviceQueueCreateInfo queue_info{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                             .queueCount = 2,
                                             .pQueuePriorities = priorities};
    const VkDeviceCreateInfo info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                  .queueCreateInfoCount = 1,
                                  .pQueueCreateInfos = &queue_info};
    VkDevice device = VK_NULL_HANDLE;
    ASSERT_EQ(vkCreateDevice(physical_device_, &info, nullptr, &device), VK_SUCCESS);
    VkQueue queues[2];
    for (uint32_t i = 0; i < 2; ++i) {
        vkGetDeviceQueue(device, 0, i, &queues[i]);
    }
    EXPECT_NE(queues[0], queues[1]);
    const VkSemaphoreCreateInfo semaphore_info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    VkSemaphore semaphore = VK_NULL_HANDLE;
    ASSERT_EQ(vkCreateSemaphore(device, &semaphore_info, nullptr, &semaphore), VK_SUCCESS);
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    const VkSubmitInfo signal{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                              .signalSemaphoreCount = 1,
                              .pSignalSemaphores = &semaphore};
    const VkSubmitInfo wait{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                            .waitSemaphoreCount = 1,
                            .pWaitSemaphores = &semaphore,
                            .pWaitDstStageMask = &stage};
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(vkQueueSubmit(queues[i % 2], 1, &signal, VK_NULL_HANDLE), VK_SUCCESS);
        ASSERT_EQ(vkQueueSubmit(queues[1 - i % 2], 1, &wait, VK_NULL_HANDLE), VK_SUCCESS);
    }
    EXPECT_EQ(vkDeviceWaitIdle(device), VK_SUCCESS);
    vkDestroySemaphore(device, semaphore, nullptr);
    vkDestroyDevice(device, nullptr);
}

VKAPI_ATTR VkBool32 VKAPI_CALL Collect(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                       VkDebugUtilsMessageTypeFlagsEXT,
                                       const VkDebugUtilsMessengerCallbackDataEXT* data,
                                       void* user) {
    static_cast<std::vector<std::string>*>(user)->push_back(data->pMessage);
    return VK_FALSE;
}

// "Lost Device": a fault ends every wait with VK_ERROR_DEVICE_LOST, and the message says why.
TEST_F(SynchronizationTest, AFaultLosesTheDeviceWithAMessage) {
    std::vector<std::string> messages;
    const VkDebugUtilsMessengerCreateInfoEXT messenger_info{
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT,
        .pfnUserCallback = Collect,
        .pUserData = &messages};
    VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
    ASSERT_EQ(vkCreateDebugUtilsMessengerEXT(instance_, &messenger_info, nullptr, &messenger),
              VK_SUCCESS);
    VkPipeline faulty = MakePipeline(kFaultyProgram, MakePipelineLayout({}));
    VkFence fence = MakeFence();
    VkFence never = MakeFence();
    Begin(commands_);
    vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, faulty);
    vkCmdDispatch(commands_, 1, 1, 1);
    ASSERT_EQ(vkEndCommandBuffer(commands_), VK_SUCCESS);
    ASSERT_EQ(Submit(commands_, fence), VK_SUCCESS);
    EXPECT_EQ(vkWaitForFences(device_, 1, &fence, VK_TRUE, UINT64_MAX), VK_ERROR_DEVICE_LOST);
    EXPECT_EQ(vkWaitForFences(device_, 1, &never, VK_TRUE, UINT64_MAX), VK_ERROR_DEVICE_LOST);
    EXPECT_EQ(vkGetFenceStatus(device_, fence), VK_ERROR_DEVICE_LOST);
    EXPECT_EQ(vkQueueWaitIdle(queue_), VK_ERROR_DEVICE_LOST);
    EXPECT_EQ(vkDeviceWaitIdle(device_), VK_ERROR_DEVICE_LOST);
    EXPECT_EQ(vkQueueSubmit(queue_, 0, nullptr, never), VK_ERROR_DEVICE_LOST);
    ASSERT_FALSE(messages.empty());
    EXPECT_GT(messages[0].size(), 20u) << messages[0];
    vkDestroyDebugUtilsMessengerEXT(instance_, messenger, nullptr);
}

}  // namespace
}  // namespace fornax::driver_test

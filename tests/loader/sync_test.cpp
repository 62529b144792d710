// Fences and semaphores through the loader.
#include <array>
#include <chrono>
#include <thread>

#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

class SyncTest : public VulkanTest {
  protected:
    void SetUp() override {
        VulkanTest::SetUp();
        if (!HasFatalFailure()) {
            out_ = MakeBuffer(4);
        }
    }
    // A command buffer that writes `value` to word 0.
    VkCommandBuffer Write(uint32_t value) {
        VkCommandBuffer commands = Begin();
        vkCmdFillBuffer(commands, out_.handle, out_.offset, 4, value);
        Barrier(commands);
        EXPECT_VK(vkEndCommandBuffer(commands));
        return commands;
    }
    struct Step {
        VkSemaphore wait = VK_NULL_HANDLE;
        uint64_t wait_value = 0;
        VkSemaphore signal = VK_NULL_HANDLE;
        uint64_t signal_value = 0;
    };
    VkResult Submit(VkCommandBuffer commands, const Step& step, VkFence fence, uint32_t queue = 0) {
        const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
        const uint32_t waits = step.wait ? 1 : 0;
        const uint32_t signals = step.signal ? 1 : 0;
        VkTimelineSemaphoreSubmitInfo values{
            .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
            .waitSemaphoreValueCount = waits,
            .pWaitSemaphoreValues = &step.wait_value,
            .signalSemaphoreValueCount = signals,
            .pSignalSemaphoreValues = &step.signal_value};
        VkSubmitInfo submit{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                            .pNext = &values,
                            .waitSemaphoreCount = waits,
                            .pWaitSemaphores = &step.wait,
                            .pWaitDstStageMask = &stage,
                            .commandBufferCount = 1,
                            .pCommandBuffers = &commands,
                            .signalSemaphoreCount = signals,
                            .pSignalSemaphores = &step.signal};
        return vkQueueSubmit(queues_[queue], 1, &submit, fence);
    }

    TestBuffer out_;
};

TEST_F(SyncTest, FencesAreSignalledResetAndReused) {
    VkFence fence = MakeFence(true);
    EXPECT_EQ(vkGetFenceStatus(device_, fence), VK_SUCCESS);
    EXPECT_VK(vkWaitForFences(device_, 1, &fence, VK_TRUE, 0));
    for (uint32_t i = 1; i <= 3; ++i) {
        ASSERT_VK(vkResetFences(device_, 1, &fence));
        EXPECT_EQ(vkGetFenceStatus(device_, fence), VK_NOT_READY);
        EXPECT_EQ(vkWaitForFences(device_, 1, &fence, VK_TRUE, 1'000'000), VK_TIMEOUT);
        ASSERT_VK(VulkanTest::Submit(Write(i), fence));
        ASSERT_VK(vkWaitForFences(device_, 1, &fence, VK_TRUE, UINT64_MAX));
        EXPECT_EQ(vkGetFenceStatus(device_, fence), VK_SUCCESS);
        EXPECT_EQ(out_.words[0], i);
    }
}

TEST_F(SyncTest, WaitingForAnyOfSeveralFences) {
    const std::array fences = {MakeFence(), MakeFence(), MakeFence()};
    ASSERT_VK(VulkanTest::Submit(Write(1), fences[1]));
    ASSERT_VK(vkWaitForFences(device_, 3, fences.data(), VK_FALSE, UINT64_MAX));
    EXPECT_EQ(vkGetFenceStatus(device_, fences[0]), VK_NOT_READY);
    EXPECT_EQ(vkWaitForFences(device_, 3, fences.data(), VK_TRUE, 1'000'000), VK_TIMEOUT);
}

TEST_F(SyncTest, AFenceAloneWaitsForTheQueue) {
    VkFence fence = MakeFence();
    ASSERT_VK(VulkanTest::Submit(Write(3), VK_NULL_HANDLE));
    ASSERT_VK(vkQueueSubmit(queues_[0], 0, nullptr, fence));
    ASSERT_VK(vkWaitForFences(device_, 1, &fence, VK_TRUE, UINT64_MAX));
    EXPECT_EQ(out_.words[0], 3u);
    ASSERT_VK(vkQueueWaitIdle(queues_[0]));
    ASSERT_VK(vkQueueWaitIdle(queues_[1]));
}

TEST_F(SyncTest, BinarySemaphoresOrderQueuesAndAreReused) {
    VkSemaphore ready = MakeSemaphore();
    for (uint32_t i = 1; i < 20; ++i) {
        VkFence fence = MakeFence();
        ASSERT_VK(Submit(Write(2 * i), {.signal = ready}, VK_NULL_HANDLE, 0));
        ASSERT_VK(Submit(Write(2 * i + 1), {.wait = ready}, fence, 1));
        ASSERT_VK(vkWaitForFences(device_, 1, &fence, VK_TRUE, UINT64_MAX));
        ASSERT_EQ(out_.words[0], 2 * i + 1);
    }
}

TEST_F(SyncTest, TimelineWaitsMayPrecedeTheirSignal) {
    VkSemaphore timeline = MakeSemaphore(5);
    VkFence fence = MakeFence();
    // Waits for 10, which only the other queue's work reaches, which waits for the host's 7.
    ASSERT_VK(Submit(Write(2), {.wait = timeline, .wait_value = 10}, fence, 0));
    ASSERT_VK(Submit(Write(1), {timeline, 7, timeline, 10}, VK_NULL_HANDLE, 1));
    EXPECT_EQ(vkWaitForFences(device_, 1, &fence, VK_TRUE, 10'000'000), VK_TIMEOUT);
    uint64_t value = 0;
    ASSERT_VK(vkGetSemaphoreCounterValueKHR(device_, timeline, &value));
    EXPECT_EQ(value, 5u);
    VkSemaphoreSignalInfo signal{
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = timeline, .value = 7};
    ASSERT_VK(vkSignalSemaphoreKHR(device_, &signal));
    ASSERT_VK(vkWaitForFences(device_, 1, &fence, VK_TRUE, UINT64_MAX));
    ASSERT_VK(vkGetSemaphoreCounterValueKHR(device_, timeline, &value));
    EXPECT_EQ(value, 10u);
    EXPECT_EQ(out_.words[0], 2u);
}

TEST_F(SyncTest, TheHostWaitsForTimelines) {
    const VkSemaphore semaphores[] = {MakeSemaphore(0), MakeSemaphore(0)};
    const uint64_t values[] = {3, 4};
    VkSemaphoreWaitInfo wait{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                             .semaphoreCount = 2,
                             .pSemaphores = semaphores,
                             .pValues = values};
    EXPECT_EQ(vkWaitSemaphoresKHR(device_, &wait, 1'000'000), VK_TIMEOUT);
    std::thread signaller([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        VkSemaphoreSignalInfo signal{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                     .semaphore = semaphores[1],
                                     .value = 4};
        EXPECT_VK(vkSignalSemaphoreKHR(device_, &signal));
    });
    wait.flags = VK_SEMAPHORE_WAIT_ANY_BIT;
    EXPECT_VK(vkWaitSemaphoresKHR(device_, &wait, UINT64_MAX));
    signaller.join();
    wait.flags = 0;
    EXPECT_EQ(vkWaitSemaphoresKHR(device_, &wait, 1'000'000), VK_TIMEOUT);
    ASSERT_VK(Submit(Write(1), {.signal = semaphores[0], .signal_value = 3}, VK_NULL_HANDLE));
    EXPECT_VK(vkWaitSemaphoresKHR(device_, &wait, UINT64_MAX));
}

}  // namespace
}  // namespace fornax::test

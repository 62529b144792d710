// Queue families, the queues of each, and their clock, through the loader.
#include <time.h>

#include <array>
#include <thread>

#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

constexpr uint32_t kCompute = 0;
constexpr uint32_t kTransfer = 1;
constexpr std::array kPriorities = {1.0f, 0.5f, 0.25f, 0.0f};

VkDeviceQueueCreateInfo QueuesOf(uint32_t family,
                                 uint32_t count,
                                 VkDeviceQueueCreateFlags flags = 0) {
    return {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
            .flags = flags,
            .queueFamilyIndex = family,
            .queueCount = count,
            .pQueuePriorities = kPriorities.data()};
}

// All queues that there are.
class QueuesTest : public VulkanTest {
  protected:
    void SetUp() override {
        queue_infos_ = {QueuesOf(kCompute, 4), QueuesOf(kTransfer, 2)};
        more_extensions_.push_back(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
        VulkanTest::SetUp();
        if (HasFatalFailure()) {
            return;
        }
        for (uint32_t family : {kCompute, kTransfer}) {
            VkCommandPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                         .queueFamilyIndex = family};
            ASSERT_VK(vkCreateCommandPool(device_, &info, nullptr, &pools_[family]));
            AtEnd([this, family] { vkDestroyCommandPool(device_, pools_[family], nullptr); });
        }
    }

    VkQueue Queue(uint32_t family, uint32_t index) {
        VkQueue queue = VK_NULL_HANDLE;
        vkGetDeviceQueue(device_, family, index, &queue);
        EXPECT_NE(queue, nullptr);
        return queue;
    }

    VkCommandBuffer BeginFor(uint32_t family) {
        VkCommandBufferAllocateInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                         .commandPool = pools_[family],
                                         .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                         .commandBufferCount = 1};
        VkCommandBuffer commands = VK_NULL_HANDLE;
        EXPECT_VK(vkAllocateCommandBuffers(device_, &info, &commands));
        VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
        EXPECT_VK(vkBeginCommandBuffer(commands, &begin));
        return commands;
    }

    void SubmitTo(VkQueue queue,
                  VkCommandBuffer commands,
                  VkSemaphore wait,
                  VkSemaphore signal,
                  VkFence fence = VK_NULL_HANDLE) {
        EXPECT_VK(vkEndCommandBuffer(commands));
        const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
        VkSubmitInfo submit{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                            .waitSemaphoreCount = wait ? 1u : 0u,
                            .pWaitSemaphores = &wait,
                            .pWaitDstStageMask = &stage,
                            .commandBufferCount = 1,
                            .pCommandBuffers = &commands,
                            .signalSemaphoreCount = signal ? 1u : 0u,
                            .pSignalSemaphores = &signal};
        EXPECT_VK(vkQueueSubmit(queue, 1, &submit, fence));
    }

    // One half of a transfer of ownership.
    void Transfer(VkCommandBuffer commands, const TestBuffer& buffer, uint32_t from, uint32_t to) {
        VkBufferMemoryBarrier barrier{
            .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
            .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
            .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
            .srcQueueFamilyIndex = from,
            .dstQueueFamilyIndex = to,
            .buffer = buffer.handle,
            .size = VK_WHOLE_SIZE};
        vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                             VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, nullptr, 1, &barrier, 0,
                             nullptr);
    }

    std::array<VkCommandPool, 2> pools_ = {};
};

TEST_F(QueuesTest, TheFirstFamilyIsForCompute) {
    uint32_t count = 2;
    std::array<VkQueueFamilyGlobalPriorityPropertiesKHR, 2> priorities;
    std::array<VkQueueFamilyProperties2, 2> families;
    for (uint32_t i = 0; i < count; ++i) {
        priorities[i] = {.sType = VK_STRUCTURE_TYPE_QUEUE_FAMILY_GLOBAL_PRIORITY_PROPERTIES_KHR};
        families[i] = {.sType = VK_STRUCTURE_TYPE_QUEUE_FAMILY_PROPERTIES_2,
                       .pNext = &priorities[i]};
    }
    vkGetPhysicalDeviceQueueFamilyProperties2(physical_, &count, families.data());
    ASSERT_EQ(count, 2u);
    EXPECT_EQ(families[0].queueFamilyProperties.queueFlags,
              VkQueueFlags{VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT});
    EXPECT_EQ(families[1].queueFamilyProperties.queueFlags, VkQueueFlags{VK_QUEUE_TRANSFER_BIT});
    EXPECT_EQ(families[0].queueFamilyProperties.queueCount, 4u);
    EXPECT_EQ(families[1].queueFamilyProperties.queueCount, 2u);
    for (const auto& priority : priorities) {
        ASSERT_EQ(priority.priorityCount, 1u);
        EXPECT_EQ(priority.priorities[0], VK_QUEUE_GLOBAL_PRIORITY_MEDIUM_KHR);
    }
}

// A baton goes round all queues of both families; each reads what the one before it wrote.
TEST_F(QueuesTest, ABufferGoesThroughEveryQueue) {
    const TestBuffer buffer = MakeBuffer(8);
    struct Stop {
        uint32_t family;
        uint32_t index;
    };
    const std::array<Stop, 6> stops = {{{kCompute, 0},
                                        {kTransfer, 0},
                                        {kCompute, 1},
                                        {kCompute, 2},
                                        {kTransfer, 1},
                                        {kCompute, 3}}};
    VkSemaphore wait = VK_NULL_HANDLE;
    VkFence fence = MakeFence();
    for (uint32_t i = 0; i < stops.size(); ++i) {
        const auto [family, index] = stops[i];
        VkCommandBuffer commands = BeginFor(family);
        if (i > 0 && stops[i - 1].family != family) {
            Transfer(commands, buffer, stops[i - 1].family, family);
        }
        if (i == 0) {
            vkCmdFillBuffer(commands, buffer.handle, buffer.offset, 4, 0x600d);
        } else {
            const VkBufferCopy copy{buffer.offset + 4 * (i - 1), buffer.offset + 4 * i, 4};
            vkCmdCopyBuffer(commands, buffer.handle, buffer.handle, 1, &copy);
        }
        const bool last = i + 1 == stops.size();
        if (last) {
            Barrier(commands);
        } else if (stops[i + 1].family != family) {
            Transfer(commands, buffer, family, stops[i + 1].family);
        }
        const VkSemaphore signal = last ? VK_NULL_HANDLE : MakeSemaphore();
        SubmitTo(Queue(family, index), commands, wait, signal, last ? fence : VK_NULL_HANDLE);
        wait = signal;
    }
    ASSERT_VK(vkWaitForFences(device_, 1, &fence, VK_TRUE, UINT64_MAX));
    for (uint32_t i = 0; i < stops.size(); ++i) {
        EXPECT_EQ(buffer.words[i], 0x600du) << i;
    }
}

TEST_F(QueuesTest, QueuesAreDifferentAndOneWaitStopsNoOther) {
    std::vector<VkQueue> all;
    for (uint32_t i = 0; i < 6; ++i) {
        all.push_back(Queue(i / 4, i % 4));
    }
    for (size_t i = 0; i < all.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
            EXPECT_NE(all[i], all[j]);
        }
    }
    // All but the last wait for the last.
    const TestBuffer buffer = MakeBuffer(6);
    VkSemaphore start = MakeSemaphore(0);
    std::array<VkFence, 6> fences;
    for (uint32_t i = 0; i < 6; ++i) {
        fences[i] = MakeFence();
        VkCommandBuffer commands = BeginFor(i / 4);
        vkCmdFillBuffer(commands, buffer.handle, buffer.offset + 4 * i, 4, i + 1);
        Barrier(commands);
        const uint64_t value = 1;
        VkTimelineSemaphoreSubmitInfo values{
            .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
            .waitSemaphoreValueCount = 1,
            .pWaitSemaphoreValues = &value,
            .signalSemaphoreValueCount = 1,
            .pSignalSemaphoreValues = &value};
        const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
        EXPECT_VK(vkEndCommandBuffer(commands));
        VkSubmitInfo submit{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                            .pNext = &values,
                            .pWaitSemaphores = &start,
                            .pWaitDstStageMask = &stage,
                            .commandBufferCount = 1,
                            .pCommandBuffers = &commands,
                            .pSignalSemaphores = &start};
        (i < 5 ? submit.waitSemaphoreCount : submit.signalSemaphoreCount) = 1;
        ASSERT_VK(vkQueueSubmit(all[i], 1, &submit, fences[i]));
    }
    ASSERT_VK(vkWaitForFences(device_, 6, fences.data(), VK_TRUE, UINT64_MAX));
    for (uint32_t i = 0; i < 6; ++i) {
        EXPECT_EQ(buffer.words[i], i + 1);
    }
}

TEST_F(QueuesTest, CalibratedClocksFrameTheDevicesTimestamps) {
    uint32_t count = 0;
    ASSERT_VK(vkGetPhysicalDeviceCalibrateableTimeDomainsEXT(physical_, &count, nullptr));
    std::vector<VkTimeDomainKHR> domains(count);
    ASSERT_VK(vkGetPhysicalDeviceCalibrateableTimeDomainsEXT(physical_, &count, domains.data()));
    const std::vector<VkTimeDomainKHR> wanted = {VK_TIME_DOMAIN_DEVICE_KHR,
                                                 VK_TIME_DOMAIN_CLOCK_MONOTONIC_KHR,
                                                 VK_TIME_DOMAIN_CLOCK_MONOTONIC_RAW_KHR};
    EXPECT_EQ(domains, wanted);
    std::array<VkCalibratedTimestampInfoKHR, 3> infos;
    for (uint32_t i = 0; i < 3; ++i) {
        infos[i] = {.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_KHR,
                    .timeDomain = wanted[i]};
    }
    std::array<std::array<uint64_t, 3>, 2> stamps;
    std::array<uint64_t, 2> deviations;
    ASSERT_VK(
        vkGetCalibratedTimestampsEXT(device_, 3, infos.data(), stamps[0].data(), &deviations[0]));

    VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                               .queryType = VK_QUERY_TYPE_TIMESTAMP,
                               .queryCount = 1};
    VkQueryPool pool = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateQueryPool(device_, &info, nullptr, &pool));
    AtEnd([this, pool] { vkDestroyQueryPool(device_, pool, nullptr); });
    vkResetQueryPoolEXT(device_, pool, 0, 1);
    VkCommandBuffer commands = BeginFor(kTransfer);
    vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, pool, 0);
    SubmitTo(Queue(kTransfer, 1), commands, VK_NULL_HANDLE, VK_NULL_HANDLE);
    ASSERT_VK(vkQueueWaitIdle(Queue(kTransfer, 1)));
    uint64_t written = 0;
    ASSERT_VK(vkGetQueryPoolResults(device_, pool, 0, 1, 8, &written, 8,
                                    VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT));

    ASSERT_VK(
        vkGetCalibratedTimestampsEXT(device_, 3, infos.data(), stamps[1].data(), &deviations[1]));
    EXPECT_GE(written, stamps[0][0]);
    EXPECT_LE(written, stamps[1][0]);
    for (uint32_t i = 0; i < 3; ++i) {
        EXPECT_LT(stamps[0][i], stamps[1][i]);
    }
    // The device's clock is the monotonic one, so the two readings differ by the deviation at most.
    for (uint32_t i = 0; i < 2; ++i) {
        EXPECT_GE(stamps[i][1], stamps[i][0]);
        EXPECT_LE(stamps[i][1] - stamps[i][0], deviations[i]);
    }
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t now_ns =
        static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
    EXPECT_LE(stamps[1][1], now_ns);
    EXPECT_LT(now_ns - stamps[1][1], 10'000'000'000u);
}

// Several threads use one queue without a lock.
class SynchronizedQueuesTest : public QueuesTest {
  protected:
    void SetUp() override {
        queue_infos_ = {
            QueuesOf(kCompute, 1),
            QueuesOf(kCompute, 2, VK_DEVICE_QUEUE_CREATE_INTERNALLY_SYNCHRONIZED_BIT_KHR)};
        more_extensions_ = {VK_KHR_INTERNALLY_SYNCHRONIZED_QUEUES_EXTENSION_NAME};
        more_features_ = &features_;
        VulkanTest::SetUp();
    }

    VkPhysicalDeviceInternallySynchronizedQueuesFeaturesKHR features_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_INTERNALLY_SYNCHRONIZED_QUEUES_FEATURES_KHR,
        .internallySynchronizedQueues = VK_TRUE};
};

TEST_F(SynchronizedQueuesTest, ThreadsShareOne) {
    VkDeviceQueueInfo2 info{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_INFO_2,
                            .flags = VK_DEVICE_QUEUE_CREATE_INTERNALLY_SYNCHRONIZED_BIT_KHR,
                            .queueFamilyIndex = kCompute,
                            .queueIndex = 1};
    VkQueue queue = VK_NULL_HANDLE;
    vkGetDeviceQueue2(device_, &info, &queue);
    ASSERT_NE(queue, nullptr);
    info.flags = 0;
    info.queueIndex = 0;
    VkQueue plain = VK_NULL_HANDLE;
    vkGetDeviceQueue2(device_, &info, &plain);
    EXPECT_NE(plain, queue);

    constexpr uint32_t kThreads = 8;
    constexpr uint32_t kRounds = 200;
    const TestBuffer buffer = MakeBuffer(kThreads * kRounds);
    std::vector<std::vector<VkCommandBuffer>> commands(kThreads);
    for (uint32_t i = 0; i < kThreads * kRounds; ++i) {
        VkCommandBuffer one = Begin();
        vkCmdFillBuffer(one, buffer.handle, buffer.offset + 4 * i, 4, i + 1);
        Barrier(one);
        ASSERT_VK(vkEndCommandBuffer(one));
        commands[i / kRounds].push_back(one);
    }
    std::vector<std::thread> threads;
    for (const auto& mine : commands) {
        threads.emplace_back([queue, &mine] {
            for (VkCommandBuffer one : mine) {
                VkSubmitInfo submit{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                    .commandBufferCount = 1,
                                    .pCommandBuffers = &one};
                EXPECT_VK(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE));
            }
            EXPECT_VK(vkQueueWaitIdle(queue));
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (uint32_t i = 0; i < kThreads * kRounds; ++i) {
        ASSERT_EQ(buffer.words[i], i + 1);
    }
}

}  // namespace
}  // namespace fornax::test

// Much of everything: instances one after another, threads, work without waits; and fork.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "base/sanitized.h"
#include "tools/soak/client.h"
#include "tools/soak/shaders/count.spv.h"

namespace fornax::test {

using soak::Client;
using soak::ClientBuffer;
using soak::ClientPipeline;
using soak::ResidentKib;
using soak::RunAndCheck;
namespace {

// Outcome: 1,000 times an instance, a device and work on its queue; memory stays what it was.
TEST(LoadTest, ThousandInstances) {
    [[maybe_unused]] constexpr uint64_t kMostGrowthKib = 8 * 1024;
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(RunAndCheck(1), "");
    }
    const uint64_t before = ResidentKib();
    for (int i = 0; i < 900; ++i) {
        ASSERT_EQ(RunAndCheck(1), "");
    }
    const uint64_t after = ResidentKib();
    RecordProperty("kib_before", static_cast<int>(before));
    RecordProperty("kib_after", static_cast<int>(after));
#ifndef FORNAX_SANITIZED
    EXPECT_LT(after, before + kMostGrowthKib);
#endif
}

// Outcome: as often as an instance needs the compiler, memory stays what it was after the first
// few.
TEST(LoadTest, InstancesThatCompile) {
    [[maybe_unused]] constexpr uint64_t kMostGrowthKib = 5 * 1024;
    const uint32_t first = std::random_device{}();  // no cache has these kernels
    const auto compile = [](uint32_t scale) {
        Client client;
        ASSERT_TRUE(client.valid()) << client.error();
        client.Free(client.MakePipeline(spirv::kCount, scale));
    };
    for (uint32_t i = 0; i < 10; ++i) {
        compile(first + i);
    }
    const uint64_t before = ResidentKib();
    for (uint32_t i = 10; i < 90; ++i) {
        compile(first + i);
    }
    const uint64_t after = ResidentKib();
    RecordProperty("kib_before", static_cast<int>(before));
    RecordProperty("kib_after", static_cast<int>(after));
#ifndef FORNAX_SANITIZED
    EXPECT_LT(after, before + kMostGrowthKib);
#endif
}

// Outcome: 64 threads that record and submit for themselves get right results.
TEST(LoadTest, SixtyFourThreads) {
    Client client;
    ASSERT_TRUE(client.valid()) << client.error();
    constexpr int kThreads = 64;
    constexpr uint32_t kRounds = 50;
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            const VkCommandPool pool = client.MakePool();
            const ClientPipeline pipeline =
                client.MakePipeline(spirv::kCount, static_cast<uint32_t>(t % 8));
            const ClientBuffer buffer = client.MakeBuffer(1024);
            uint32_t sum = 0;
            for (uint32_t round = 0; round < kRounds; ++round) {
                sum += round;
                VkCommandBuffer commands = client.Record(pool, pipeline, buffer, {&round, 1}, 16);
                if (client.Run(commands) != VK_SUCCESS) {
                    return;
                }
                vkFreeCommandBuffers(client.device, pool, 1, &commands);
            }
            bool all = true;
            for (uint32_t i = 0; i < 1024; ++i) {
                all = all && buffer.words[i] == sum * (i + static_cast<uint32_t>(t % 8));
            }
            right += all ? 1 : 0;
            client.Free(buffer);
            client.Free(pipeline);
            vkDestroyCommandPool(client.device, pool, nullptr);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(right, kThreads);
    EXPECT_TRUE(client.valid()) << client.error();
}

// Outcome: a program that submits faster than the device works, and never waits, is slowed down
// when many submissions are pending; memory stays bounded, and everything runs.
TEST(LoadTest, AnApplicationThatNeverWaits) {
    Client client;
    ASSERT_TRUE(client.valid()) << client.error();
    const ClientPipeline pipeline = client.MakePipeline(spirv::kCount);
    const ClientBuffer buffer = client.MakeBuffer(64 * 64);
    ASSERT_TRUE(client.valid()) << client.error();
    std::fill_n(buffer.words, buffer.count, 0u);
    const uint32_t addend = 1;
    const VkCommandBuffer commands = client.Record(client.pool, pipeline, buffer, {&addend, 1}, 64);
    [[maybe_unused]] constexpr uint64_t kMostGrowthKib = 32 * 1024;
    constexpr uint32_t kSubmissions = 300'000;
    const uint64_t before = ResidentKib();
    uint64_t most = before;
    for (uint32_t i = 0; i < kSubmissions; ++i) {
        ASSERT_EQ(client.Submit(commands), VK_SUCCESS);
        if (i % 4096 == 0) {
            most = std::max(most, ResidentKib());
        }
    }
#ifndef FORNAX_SANITIZED
    EXPECT_LT(most, before + kMostGrowthKib);
#endif
    ASSERT_EQ(vkQueueWaitIdle(client.queue), VK_SUCCESS);
    EXPECT_EQ(buffer.words[0], kSubmissions);
    client.Free(buffer);
    client.Free(pipeline);
}

// Submissions behind a wait that the same thread ends later must never wait for it.
TEST(LoadTest, ManySubmissionsBehindAWait) {
    Client client;
    ASSERT_TRUE(client.valid()) << client.error();
    const ClientPipeline pipeline = client.MakePipeline(spirv::kCount);
    const ClientBuffer buffer = client.MakeBuffer(64);
    std::fill_n(buffer.words, buffer.count, 0u);
    const VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                         .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                     .pNext = &type};
    VkSemaphore gate;
    ASSERT_EQ(vkCreateSemaphore(client.device, &info, nullptr, &gate), VK_SUCCESS);
    const uint64_t one = 1;
    const VkTimelineSemaphoreSubmitInfo values{
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = 1,
        .pWaitSemaphoreValues = &one};
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    const VkSubmitInfo wait{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                            .pNext = &values,
                            .waitSemaphoreCount = 1,
                            .pWaitSemaphores = &gate,
                            .pWaitDstStageMask = &stage};
    ASSERT_EQ(vkQueueSubmit(client.queue, 1, &wait, VK_NULL_HANDLE), VK_SUCCESS);
    const uint32_t addend = 1;
    const VkCommandBuffer commands = client.Record(client.pool, pipeline, buffer, {&addend, 1}, 1);
    constexpr uint32_t kSubmissions = 20'000;
    const auto begin = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < kSubmissions; ++i) {
        ASSERT_EQ(client.Submit(commands), VK_SUCCESS);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
    const VkSemaphoreSignalInfo signal{
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = gate, .value = 1};
    ASSERT_EQ(vkSignalSemaphore(client.device, &signal), VK_SUCCESS);
    ASSERT_EQ(vkQueueWaitIdle(client.queue), VK_SUCCESS);
    EXPECT_EQ(buffer.words[0], kSubmissions);
    vkDestroySemaphore(client.device, gate, nullptr);
    client.Free(buffer);
    client.Free(pipeline);
}

#ifndef FORNAX_THREAD_SANITIZER

// What a child of fork finds out about its parent's device; 0 if it is all as it should be.
int ChildChecks(Client& inherited, VkCommandBuffer commands) {
    const VkFenceCreateInfo info{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence fence = VK_NULL_HANDLE;
    if (vkCreateFence(inherited.device, &info, nullptr, &fence) != VK_SUCCESS) {
        return 1;
    }
    if (inherited.Submit(commands, fence) != VK_ERROR_DEVICE_LOST) {
        return 2;
    }
    if (vkWaitForFences(inherited.device, 1, &fence, VK_TRUE, 1'000'000'000) !=
        VK_ERROR_DEVICE_LOST) {
        return 3;
    }
    if (vkQueueWaitIdle(inherited.queue) != VK_ERROR_DEVICE_LOST) {
        return 4;
    }
    if (vkDeviceWaitIdle(inherited.device) != VK_ERROR_DEVICE_LOST) {
        return 5;
    }
    vkDestroyFence(inherited.device, fence, nullptr);
    if (const std::string wrong = RunAndCheck(1); !wrong.empty()) {
        fprintf(stderr, "%s\n", wrong.c_str());
        return 6;
    }
    return 0;
}

// Outcome: in the child the parent's device is lost (VK_ERROR_DEVICE_LOST from submissions and
// waits); it may be destroyed, and the child may have a device of its own. The parent goes on.
TEST(LoadTest, Fork) {
    for (int round = 0; round < 10; ++round) {
        auto client = std::make_unique<Client>();
        ASSERT_TRUE(client->valid()) << client->error();
        const ClientPipeline pipeline = client->MakePipeline(spirv::kCount);
        const ClientBuffer buffer = client->MakeBuffer(64 * 1024);
        std::fill_n(buffer.words, buffer.count, 0u);
        const uint32_t addend = 1;
        const VkCommandBuffer commands =
            client->Record(client->pool, pipeline, buffer, {&addend, 1}, 1024);
        // Threads are at work when the process forks.
        for (int i = 0; i < 50; ++i) {
            ASSERT_EQ(client->Submit(commands), VK_SUCCESS);
        }
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            alarm(60);  // a child that hangs dies of it
            int failed = ChildChecks(*client, commands);
            client->Free(buffer);
            client->Free(pipeline);
            client.reset();
            _exit(failed);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
        EXPECT_EQ(WEXITSTATUS(status), 0);
        EXPECT_EQ(client->Run(commands), VK_SUCCESS);
        EXPECT_EQ(buffer.words[0], 51u);
        client->Free(buffer);
        client->Free(pipeline);
    }
}

#endif

}  // namespace
}  // namespace fornax::test

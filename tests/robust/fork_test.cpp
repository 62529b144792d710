// A process that forks while kernels are compiled, in the background or by another of its threads.
// Outcome: in the child the pipeline cache has what was there at the fork, the same kernels can be
// made anew, everything inherited can be destroyed, and another device works; the parent goes on.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/sanitized.h"
#include "base/test_directory.h"
#include "tests/robust/shaders/long.spv.h"
#include "tools/soak/client.h"
#include "tools/soak/shaders/count.spv.h"

namespace fornax::test {

using soak::Client;
using soak::ClientBuffer;
using soak::ClientPipeline;
namespace {

// ThreadSanitizer ends a child that starts a thread after a fork with threads.
#ifndef FORNAX_THREAD_SANITIZER

VkPipelineCache MakeCache(const Client& client) {
    const VkPipelineCacheCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    VkPipelineCache cache = VK_NULL_HANDLE;
    EXPECT_EQ(vkCreatePipelineCache(client.device, &info, nullptr, &cache), VK_SUCCESS);
    return cache;
}

size_t DataBytes(const Client& client, VkPipelineCache cache) {
    size_t bytes = 0;
    EXPECT_EQ(vkGetPipelineCacheData(client.device, cache, &bytes, nullptr), VK_SUCCESS);
    return bytes;
}

class ForkTest : public testing::Test {
  protected:
    void SetUp() override { setenv("FORNAX_CACHE_DIR", directory_.path().c_str(), 1); }
    void TearDown() override {
        unsetenv("FORNAX_CACHE_DIR");
        unsetenv("FORNAX_TIER");
    }

    // Runs in the child, which ends with the number of the first check that failed, 0 for none.
    static int InChild(const std::function<int()>& checks) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(100);  // a child that hangs dies of it
            _exit(checks());
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child) {
            return -1;
        }
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

    const TestDirectory directory_;
    uint32_t constant_ = std::random_device{}();  // no cache has the kernels
};

TEST_F(ForkTest, WhileTheOptimizedTierIsMadeInTheBackground) {
    for (useconds_t round = 0; round < 3; ++round) {
        auto client = std::make_unique<Client>();
        ASSERT_TRUE(client->valid()) << client->error();
        const VkPipelineCache cache = MakeCache(*client);
        // The first is complete; of the others, one is being compiled and one waits for it.
        std::vector<ClientPipeline> pipelines = {client->MakePipeline(spirv::kCount, 1, cache)};
        const size_t bytes = DataBytes(*client, cache);
        for (const uint32_t constant : {++constant_, constant_ + 1'000}) {
            pipelines.push_back(client->MakePipeline(spirv::kLong, constant, cache));
        }
        ASSERT_TRUE(client->valid()) << client->error();
        usleep(round * 20'000);  // at another place each time
        const auto free_all = [&] {
            vkDestroyPipelineCache(client->device, cache, nullptr);
            for (const ClientPipeline& pipeline : pipelines) {
                client->Free(pipeline);
            }
            client.reset();
        };
        const int result = InChild([&] {
            if (DataBytes(*client, cache) != bytes) {
                return 1;  // or the kernel is too short for this test
            }
            VkResult made = VK_NOT_READY;
            client->Free(client->MakePipeline(spirv::kLong, constant_, cache, &made));
            if (made != VK_SUCCESS) {
                return 2;
            }
            free_all();
            return soak::RunAndCheck(1).empty() ? 0 : 3;
        });
        EXPECT_EQ(result, 0);
        EXPECT_GT(DataBytes(*client, cache), bytes);  // waits
        free_all();
    }
}

// One thread compiles a kernel, another one waits for the same, and a third waits for the data of
// the cache.
TEST_F(ForkTest, WhileOtherThreadsCompileAndWait) {
    auto client = std::make_unique<Client>();
    ASSERT_TRUE(client->valid()) << client->error();
    const VkPipelineCache cache = MakeCache(*client);
    const ClientPipeline waited_for = client->MakePipeline(spirv::kLong, constant_, cache);
    setenv("FORNAX_TIER", "1", 1);
    auto full = std::make_unique<Client>();
    ASSERT_TRUE(full->valid()) << full->error();
    std::atomic<int> ended = 0;
    const auto make = [&] {
        VkResult made = VK_NOT_READY;
        full->Free(full->MakePipeline(spirv::kLong, constant_ + 1, VK_NULL_HANDLE, &made));
        ++ended;
        return made;
    };
    full->Free(full->MakePipeline(spirv::kCount));  // has the compiler of this client begin
    unsetenv("FORNAX_TIER");
    const auto free_all = [&] {
        full.reset();
        vkDestroyPipelineCache(client->device, cache, nullptr);
        client->Free(waited_for);
        client.reset();
    };
    std::vector<std::thread> threads;
    threads.emplace_back([&] { EXPECT_EQ(make(), VK_SUCCESS); });
    threads.emplace_back([&] { EXPECT_EQ(make(), VK_SUCCESS); });
    threads.emplace_back([&] {
        DataBytes(*client, cache);
        ++ended;
    });
    usleep(200'000);
    const int result = InChild([&] {
        if (ended != 0) {
            return 1;  // the kernel is too short for this test
        }
        const size_t bytes = DataBytes(*client, cache);
        if (make() != VK_SUCCESS) {
            return 2;
        }
        if (DataBytes(*client, cache) != bytes) {
            return 3;
        }
        free_all();
        return soak::RunAndCheck(1).empty() ? 0 : 4;
    });
    EXPECT_EQ(result, 0);
    for (std::thread& thread : threads) {
        thread.join();
    }
    free_all();
}

#endif

}  // namespace
}  // namespace fornax::test

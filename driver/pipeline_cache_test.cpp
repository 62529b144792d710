// Pipeline caches and what pipelines do with them, against a compiler that counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "driver/test_device.h"
#include "driver/test_kernel_compiler.h"

namespace fornax::driver_test {
namespace {

using Bytes = std::vector<uint8_t>;

class PipelineCacheTest : public TestDevice {
  protected:
    void SetUp() override {
        ResetCompilerCounts();
        VkPhysicalDevicePipelineCreationCacheControlFeatures cache_control{
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES,
            .pipelineCreationCacheControl = VK_TRUE};
        CreateAll({.device_extensions = {"VK_EXT_pipeline_creation_cache_control",
                                         "VK_EXT_pipeline_creation_feedback"},
                   .device_chain = &cache_control});
        const VkPipelineLayoutCreateInfo info{.sType =
                                                  VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
        ASSERT_EQ(vkCreatePipelineLayout(device_, &info, nullptr, &layout_), VK_SUCCESS);
    }

    void TearDown() override {
        RefuseToLoad(false);
        vkDestroyPipelineLayout(device_, layout_, nullptr);
        TestDevice::TearDown();
    }

    VkPipelineCache MakeCache(const Bytes& data = {}) {
        const VkPipelineCacheCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                             .initialDataSize = data.size(),
                                             .pInitialData = data.data()};
        VkPipelineCache cache = VK_NULL_HANDLE;
        EXPECT_EQ(vkCreatePipelineCache(device_, &info, nullptr, &cache), VK_SUCCESS);
        return cache;
    }

    Bytes DataOf(VkPipelineCache cache) {
        size_t size = 0;
        EXPECT_EQ(vkGetPipelineCacheData(device_, cache, &size, nullptr), VK_SUCCESS);
        Bytes data(size);
        EXPECT_EQ(vkGetPipelineCacheData(device_, cache, &size, data.data()), VK_SUCCESS);
        EXPECT_EQ(size, data.size());
        return data;
    }

    VkShaderModule MakeModule(uint32_t number) {
        const TestProgram program = {kSpirvMagic, number};
        const VkShaderModuleCreateInfo info{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                            .codeSize = sizeof(program),
                                            .pCode = program.data()};
        VkShaderModule shader_module = VK_NULL_HANDLE;
        EXPECT_EQ(vkCreateShaderModule(device_, &info, nullptr, &shader_module), VK_SUCCESS);
        return shader_module;
    }

    // Creates pipelines of the numbered programs and destroys them again.
    VkResult Build(VkPipelineCache cache,
                   const std::vector<uint32_t>& numbers,
                   VkPipelineCreateFlags flags = 0,
                   std::vector<bool>* built = nullptr,
                   const void* chain = nullptr) {
        std::vector<VkComputePipelineCreateInfo> infos;
        for (const uint32_t number : numbers) {
            infos.push_back({.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                             .pNext = chain,
                             .flags = flags,
                             .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                       .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                       .module = MakeModule(number),
                                       .pName = "main"},
                             .layout = layout_});
        }
        std::vector<VkPipeline> pipelines(numbers.size(),
                                          reinterpret_cast<VkPipeline>(uintptr_t{0xdead}));
        const VkResult result =
            vkCreateComputePipelines(device_, cache, static_cast<uint32_t>(infos.size()),
                                     infos.data(), nullptr, pipelines.data());
        for (size_t i = 0; i < infos.size(); ++i) {
            vkDestroyPipeline(device_, pipelines[i], nullptr);
            vkDestroyShaderModule(device_, infos[i].stage.module, nullptr);
            if (built) {
                built->push_back(pipelines[i] != VK_NULL_HANDLE);
            }
        }
        return result;
    }

    void Destroy(VkPipelineCache cache) { vkDestroyPipelineCache(device_, cache, nullptr); }

    VkPipelineLayout layout_ = VK_NULL_HANDLE;
};

TEST_F(PipelineCacheTest, HeaderIsAsTheSpecificationSays) {
    VkPipelineCache cache = MakeCache();
    const Bytes data = DataOf(cache);
    ASSERT_EQ(data.size(), sizeof(VkPipelineCacheHeaderVersionOne));
    VkPipelineCacheHeaderVersionOne header;
    std::memcpy(&header, data.data(), sizeof(header));
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(physical_device_, &properties);
    EXPECT_EQ(header.headerSize, 32u);
    EXPECT_EQ(header.headerVersion, VK_PIPELINE_CACHE_HEADER_VERSION_ONE);
    EXPECT_EQ(header.vendorID, properties.vendorID);
    EXPECT_EQ(header.deviceID, properties.deviceID);
    EXPECT_EQ(std::memcmp(header.pipelineCacheUUID, properties.pipelineCacheUUID, VK_UUID_SIZE), 0);
    Destroy(cache);
}

TEST_F(PipelineCacheTest, KeepsKernelsWithinAndAcrossRuns) {
    VkPipelineCache cache = MakeCache();
    EXPECT_EQ(Build(cache, {1, 2, 1}), VK_SUCCESS);
    EXPECT_EQ(CompilerCounts().compiled, 2u);
    const Bytes data = DataOf(cache);
    Destroy(cache);

    VkPipelineCache second = MakeCache(data);
    EXPECT_EQ(Build(second, {2, 1, 3}), VK_SUCCESS);
    EXPECT_EQ(CompilerCounts().compiled, 3u);
    EXPECT_EQ(CompilerCounts().loaded, 2u);
    EXPECT_GT(DataOf(second).size(), data.size());
    Destroy(second);
}

// Data that was read but never used is written again.
TEST_F(PipelineCacheTest, KeepsWhatItNeverLoaded) {
    VkPipelineCache cache = MakeCache();
    ASSERT_EQ(Build(cache, {1}), VK_SUCCESS);
    const Bytes data = DataOf(cache);
    VkPipelineCache second = MakeCache(data);
    EXPECT_EQ(DataOf(second), data);
    Destroy(second);
    Destroy(cache);
}

TEST_F(PipelineCacheTest, MergesWithoutDuplicates) {
    VkPipelineCache a = MakeCache();
    VkPipelineCache b = MakeCache();
    ASSERT_EQ(Build(a, {1, 2}), VK_SUCCESS);
    ASSERT_EQ(Build(b, {2, 3}), VK_SUCCESS);
    VkPipelineCache from_data = MakeCache(DataOf(b));
    VkPipelineCache merged = MakeCache();
    const VkPipelineCache sources[] = {a, from_data};
    EXPECT_EQ(vkMergePipelineCaches(device_, merged, 2, sources), VK_SUCCESS);
    Destroy(a);
    Destroy(b);
    Destroy(from_data);
    ResetCompilerCounts();
    EXPECT_EQ(Build(merged, {1, 2, 3}), VK_SUCCESS);
    EXPECT_EQ(CompilerCounts().compiled, 0u);
    EXPECT_EQ(CompilerCounts().loaded, 1u);  // only 3 came as bytes
    Destroy(merged);
}

TEST_F(PipelineCacheTest, ReportsTheRoomThatItLacks) {
    VkPipelineCache cache = MakeCache();
    ASSERT_EQ(Build(cache, {1, 2}), VK_SUCCESS);
    const Bytes all = DataOf(cache);
    for (size_t room = 0; room < all.size(); ++room) {
        Bytes data(all.size(), 0xee);
        size_t size = room;
        EXPECT_EQ(vkGetPipelineCacheData(device_, cache, &size, data.data()), VK_INCOMPLETE);
        EXPECT_LE(size, room);
        EXPECT_TRUE(size == 0 || size >= 32) << size;
        for (size_t i = size; i < data.size(); ++i) {
            ASSERT_EQ(data[i], 0xee) << "wrote past " << size;
        }
        // What was written is a valid cache.
        data.resize(size);
        VkPipelineCache partial = MakeCache(data);
        if (size > 0) {
            EXPECT_EQ(DataOf(partial), data);
        }
        Destroy(partial);
    }
    Destroy(cache);
}

// "If the data is not of a compatible cache it must be ignored", and no byte of it may do harm.
TEST_F(PipelineCacheTest, SurvivesDamagedData) {
    VkPipelineCache cache = MakeCache();
    ASSERT_EQ(Build(cache, {1, 2, 3}), VK_SUCCESS);
    const Bytes good = DataOf(cache);
    Destroy(cache);
    const auto try_data = [&](const Bytes& data) {
        VkPipelineCache damaged = MakeCache(data);
        EXPECT_EQ(Build(damaged, {1, 2, 3}), VK_SUCCESS);
        Destroy(damaged);
    };
    for (size_t size = 0; size < good.size(); ++size) {
        try_data(Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(size)));
    }
    std::mt19937 random(1);
    for (size_t i = 0; i < good.size(); ++i) {
        Bytes bad = good;
        bad[i] ^= static_cast<uint8_t>(1 + random() % 255);
        try_data(bad);
    }
    // Nothing that the digest let through was refused by the compiler, and nothing was trusted
    // that differs from what was written.
    EXPECT_EQ(CompilerCounts().load_refused, 0u);
    // Lengths that overflow.
    for (const size_t offset : {36u, 40u, 44u}) {
        Bytes bad = good;
        std::fill_n(bad.begin() + static_cast<ptrdiff_t>(offset), 4, uint8_t{0xff});
        try_data(bad);
    }
}

TEST_F(PipelineCacheTest, IgnoresDataOfAnotherDevice) {
    VkPipelineCache cache = MakeCache();
    ASSERT_EQ(Build(cache, {1}), VK_SUCCESS);
    Bytes data = DataOf(cache);
    Destroy(cache);
    data[16] ^= 1;  // in the UUID
    VkPipelineCache foreign = MakeCache(data);
    EXPECT_EQ(DataOf(foreign).size(), sizeof(VkPipelineCacheHeaderVersionOne));
    Destroy(foreign);
}

// What the compiler will not take back is compiled anew, and then replaces what was there.
TEST_F(PipelineCacheTest, ReplacesKernelsThatTheCompilerRefuses) {
    VkPipelineCache cache = MakeCache();
    ASSERT_EQ(Build(cache, {1}), VK_SUCCESS);
    VkPipelineCache second = MakeCache(DataOf(cache));
    RefuseToLoad(true);
    ResetCompilerCounts();
    EXPECT_EQ(Build(second, {1, 1}), VK_SUCCESS);
    EXPECT_EQ(CompilerCounts().load_refused, 1u);
    EXPECT_EQ(CompilerCounts().compiled, 1u);
    Destroy(second);
    Destroy(cache);
}

TEST_F(PipelineCacheTest, FailsWhereCompilationIsForbidden) {
    VkPipelineCache cache = MakeCache();
    ASSERT_EQ(Build(cache, {1}), VK_SUCCESS);
    constexpr auto kNoCompile = VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT;
    std::vector<bool> built;
    EXPECT_EQ(Build(cache, {1, 2, 1}, kNoCompile, &built), VK_PIPELINE_COMPILE_REQUIRED);
    EXPECT_EQ(built, (std::vector<bool>{true, false, true}));
    built.clear();
    EXPECT_EQ(Build(cache, {1, 2, 1}, kNoCompile | VK_PIPELINE_CREATE_EARLY_RETURN_ON_FAILURE_BIT,
                    &built),
              VK_PIPELINE_COMPILE_REQUIRED);
    EXPECT_EQ(built, (std::vector<bool>{true, false, false}));
    EXPECT_EQ(CompilerCounts().compiled, 1u);
    Destroy(cache);
}

TEST_F(PipelineCacheTest, UnsupportedKernelsFailAloneWithAnError) {
    std::vector<bool> built;
    EXPECT_LT(Build(VK_NULL_HANDLE, {1, kUnsupportedProgram.back(), 2}, 0, &built), VK_SUCCESS);
    EXPECT_EQ(built, (std::vector<bool>{true, false, true}));
}

// A cache without VK_PIPELINE_CACHE_CREATE_EXTERNALLY_SYNCHRONIZED_BIT may be used by all threads.
TEST_F(PipelineCacheTest, ThreadsShareACache) {
    VkPipelineCache cache = MakeCache();
    std::vector<std::thread> threads;
    for (uint32_t thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (uint32_t i = 0; i < 20; ++i) {
                EXPECT_EQ(Build(cache, {i, i + thread, 100 + i * thread}), VK_SUCCESS);
            }
            // Others may add to it between the two calls: "VK_INCOMPLETE" then.
            size_t size = 0;
            EXPECT_EQ(vkGetPipelineCacheData(device_, cache, &size, nullptr), VK_SUCCESS);
            Bytes data(size);
            EXPECT_GE(vkGetPipelineCacheData(device_, cache, &size, data.data()), VK_SUCCESS);
            EXPECT_LE(size, data.size());
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    ResetCompilerCounts();
    EXPECT_EQ(Build(cache, {0, 7, 19, 22, 157}), VK_SUCCESS);
    EXPECT_EQ(CompilerCounts().compiled, 0u);
    Destroy(cache);
}

TEST_F(PipelineCacheTest, FeedbackTellsHitsFromMisses) {
    VkPipelineCache cache = MakeCache();
    VkPipelineCreationFeedback whole = {};
    VkPipelineCreationFeedback stage = {};
    const VkPipelineCreationFeedbackCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO,
        .pPipelineCreationFeedback = &whole,
        .pipelineStageCreationFeedbackCount = 1,
        .pPipelineStageCreationFeedbacks = &stage};
    ASSERT_EQ(Build(cache, {1}, 0, nullptr, &info), VK_SUCCESS);
    EXPECT_EQ(whole.flags, VkFlags{VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT});
    EXPECT_GT(whole.duration, 0u);
    EXPECT_EQ(stage.flags, whole.flags);
    ASSERT_EQ(Build(cache, {1}, 0, nullptr, &info), VK_SUCCESS);
    constexpr VkFlags kHit = VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT |
                             VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT;
    EXPECT_EQ(whole.flags, kHit);
    EXPECT_EQ(stage.flags, kHit);
    Destroy(cache);
}

// --- Warnings
// --------------------------------------------------------------------------------------

// A process warns once for a cause, so each of these has a process for itself.
class PipelineCacheDeathTest : public PipelineCacheTest {
  protected:
    void SetUp() override {
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        PipelineCacheTest::SetUp();
    }

    static auto OneWarning(const std::string& text) {
        return testing::AllOf(
            testing::StartsWith("fornax: warning: " + text),
            testing::ResultOf(
                "lines", [](const std::string& all) { return std::ranges::count(all, '\n'); }, 1));
    }

    Bytes MakeData() {
        VkPipelineCache cache = MakeCache();
        EXPECT_EQ(Build(cache, {1, 2}), VK_SUCCESS);
        Bytes data = DataOf(cache);
        Destroy(cache);
        return data;
    }
};

TEST_F(PipelineCacheDeathTest, DamagedDataIsToldOnce) {
    const auto use = [this](const auto& damage) {
        Bytes data = MakeData();
        damage(data);
        for (int i = 0; i < 3; ++i) {
            VkPipelineCache cache = MakeCache(data);
            EXPECT_EQ(Build(cache, {1, 2}), VK_SUCCESS);
            Destroy(cache);
        }
        ::_exit(testing::Test::HasFailure() ? 1 : 0);
    };
    EXPECT_EXIT(use([](Bytes& data) { data.back() ^= 1; }), testing::ExitedWithCode(0),
                OneWarning("A record of "));
    EXPECT_EXIT(use([](Bytes& data) { data.resize(data.size() - 1); }), testing::ExitedWithCode(0),
                OneWarning("The initial data of a pipeline cache is damaged: its last "));
    EXPECT_EXIT(use([](Bytes& data) { data.push_back(0); }), testing::ExitedWithCode(0),
                OneWarning("The initial data of a pipeline cache is damaged: its last 1 bytes "));
    EXPECT_EXIT(use([](Bytes&) {}), testing::ExitedWithCode(0), "^$");
    // Data of another driver is no damage.
    EXPECT_EXIT(use([](Bytes& data) { data[16] ^= 1; }), testing::ExitedWithCode(0), "^$");
}

TEST_F(PipelineCacheDeathTest, RefusedKernelsAreToldOnce) {
    const auto use = [this] {
        const Bytes data = MakeData();
        RefuseToLoad(true);
        VkPipelineCache cache = MakeCache(data);
        EXPECT_EQ(Build(cache, {1, 2}), VK_SUCCESS);
        ::_exit(testing::Test::HasFailure() ? 1 : 0);
    };
    EXPECT_EXIT(use(), testing::ExitedWithCode(0),
                OneWarning("The kernel was not written by this compiler. It came from the initial "
                           "data of a pipeline cache and is compiled again."));
}

TEST_F(PipelineCacheDeathTest, AMissingCacheDirectoryIsToldOnce) {
    const auto use = [this] {
        setenv("FORNAX_CACHE_DIR", "/dev/null/cache", 1);
        for (int i = 0; i < 2; ++i) {
            TearDown();
            SetUp();
            EXPECT_EQ(Build(VK_NULL_HANDLE, {1, 2}), VK_SUCCESS);
        }
        ::_exit(testing::Test::HasFailure() ? 1 : 0);
    };
    EXPECT_EXIT(use(), testing::ExitedWithCode(0),
                OneWarning("Kernels are not cached on disk: /dev/null/cache cannot be created: Not "
                           "a directory."));
}

// Each instance's messengers hear of it, and then standard error does not.
TEST_F(PipelineCacheDeathTest, MessengersHearItInstead) {
    const auto use = [this] {
        static int heard = 0;
        const VkDebugUtilsMessengerCreateInfoEXT info{
            .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
            .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT,
            .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT,
            .pfnUserCallback =
                [](VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                   const VkDebugUtilsMessengerCallbackDataEXT* data, void*) -> VkBool32 {
                heard += std::strstr(data->pMessage, "/dev/null/cache") ? 1 : 0;
                return VK_FALSE;
            }};
        setenv("FORNAX_CACHE_DIR", "/dev/null/cache", 1);
        for (int i = 0; i < 2; ++i) {
            TearDown();
            SetUp();
            VkDebugUtilsMessengerEXT messenger;
            EXPECT_EQ(vkCreateDebugUtilsMessengerEXT(instance_, &info, nullptr, &messenger),
                      VK_SUCCESS);
            EXPECT_EQ(Build(VK_NULL_HANDLE, {1}), VK_SUCCESS);
            vkDestroyDebugUtilsMessengerEXT(instance_, messenger, nullptr);
        }
        ::_exit(testing::Test::HasFailure() ? 1 : heard);
    };
    EXPECT_EXIT(use(), testing::ExitedWithCode(2), "^$");
}

}  // namespace
}  // namespace fornax::driver_test

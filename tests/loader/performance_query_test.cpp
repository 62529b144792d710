// Performance queries (VK_KHR_performance_query) through the loader: exact counts of what a queue
// does between the begin and the end of a query.
#include <array>
#include <set>
#include <string>

#include <gmock/gmock.h>

#include "tests/loader/matrix_features.h"
#include "tests/loader/shaders/count.spv.h"
#include "tests/loader/shaders/matrices_bf16.spv.h"
#include "tests/loader/shaders/matrices_f16.spv.h"
#include "tests/loader/shaders/matrices_f32.spv.h"
#include "tests/loader/shaders/matrices_u8_s8.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

using testing::ElementsAre;

class PerformanceQueryTest : public VulkanTest {
  protected:
    void SetUp() override {
        api_version_ = VK_API_VERSION_1_3;
        more_extensions_ = {VK_KHR_PERFORMANCE_QUERY_EXTENSION_NAME,
                            VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
                            VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME};
        more_features_ = matrices_.first();
        VulkanTest::SetUp();
        if (HasFatalFailure()) {
            return;
        }
        uint32_t count = 0;
        ASSERT_VK(vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR(
            physical_, 0, &count, nullptr, nullptr));
        ASSERT_GT(count, 0u);
        counters_.assign(count, {.sType = VK_STRUCTURE_TYPE_PERFORMANCE_COUNTER_KHR});
        descriptions_.assign(count,
                             {.sType = VK_STRUCTURE_TYPE_PERFORMANCE_COUNTER_DESCRIPTION_KHR});
        ASSERT_VK(vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR(
            physical_, 0, &count, counters_.data(), descriptions_.data()));
        ASSERT_EQ(count, counters_.size());
        // Before any command buffer begins.
        const VkAcquireProfilingLockInfoKHR lock{
            .sType = VK_STRUCTURE_TYPE_ACQUIRE_PROFILING_LOCK_INFO_KHR, .timeout = UINT64_MAX};
        ASSERT_VK(vkAcquireProfilingLockKHR(device_, &lock));
    }
    void TearDown() override {
        if (device_) {
            vkDeviceWaitIdle(device_);
            vkResetCommandPool(device_, pool_, 0);
            vkReleaseProfilingLockKHR(device_);
        }
        VulkanTest::TearDown();
    }

    uint32_t IndexOf(const std::string& name) {
        for (uint32_t i = 0; i < descriptions_.size(); ++i) {
            if (descriptions_[i].name == name) {
                return i;
            }
        }
        ADD_FAILURE() << "There is no counter " << name << ".";
        return 0;
    }
    // Reset already.
    VkQueryPool MakePool(const std::vector<std::string>& names, uint32_t queries = 1) {
        std::vector<uint32_t> indices;
        for (const std::string& name : names) {
            indices.push_back(IndexOf(name));
        }
        const VkQueryPoolPerformanceCreateInfoKHR counters{
            .sType = VK_STRUCTURE_TYPE_QUERY_POOL_PERFORMANCE_CREATE_INFO_KHR,
            .counterIndexCount = static_cast<uint32_t>(indices.size()),
            .pCounterIndices = indices.data()};
        uint32_t passes = 0;
        vkGetPhysicalDeviceQueueFamilyPerformanceQueryPassesKHR(physical_, &counters, &passes);
        EXPECT_EQ(passes, 1u);
        const VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                         .pNext = &counters,
                                         .queryType = VK_QUERY_TYPE_PERFORMANCE_QUERY_KHR,
                                         .queryCount = queries};
        VkQueryPool pool = VK_NULL_HANDLE;
        EXPECT_VK(vkCreateQueryPool(device_, &info, nullptr, &pool));
        AtEnd([this, pool] { vkDestroyQueryPool(device_, pool, nullptr); });
        vkResetQueryPool(device_, pool, 0, queries);
        return pool;
    }
    std::vector<uint64_t> Results(VkQueryPool pool, size_t counters, uint32_t query = 0) {
        std::vector<VkPerformanceCounterResultKHR> results(counters);
        const size_t bytes = counters * sizeof(results[0]);
        EXPECT_VK(vkGetQueryPoolResults(device_, pool, query, 1, bytes, results.data(), bytes,
                                        VK_QUERY_RESULT_WAIT_BIT));
        std::vector<uint64_t> values;
        for (const VkPerformanceCounterResultKHR& result : results) {
            values.push_back(result.uint64);
        }
        return values;
    }

    std::vector<VkPerformanceCounterKHR> counters_;
    std::vector<VkPerformanceCounterDescriptionKHR> descriptions_;

    VkPhysicalDevicePerformanceQueryFeaturesKHR performance_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PERFORMANCE_QUERY_FEATURES_KHR,
        .performanceCounterQueryPools = VK_TRUE,
        .performanceCounterMultipleQueryPools = VK_TRUE};
    MatrixFeatures matrices_{&performance_};
};

TEST_F(PerformanceQueryTest, EveryFamilyListsItsCounters) {
    VkPhysicalDevicePerformanceQueryPropertiesKHR properties{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PERFORMANCE_QUERY_PROPERTIES_KHR};
    VkPhysicalDeviceProperties2 all{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                    .pNext = &properties};
    vkGetPhysicalDeviceProperties2(physical_, &all);
    EXPECT_TRUE(properties.allowCommandBufferQueryCopies);
    for (uint32_t family = 0; family < 2; ++family) {
        uint32_t count = 0;
        ASSERT_VK(vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR(
            physical_, family, &count, nullptr, nullptr));
        ASSERT_EQ(count, counters_.size());
        std::set<std::string> names;
        std::set<std::vector<uint8_t>> ids;
        for (uint32_t i = 0; i < count; ++i) {
            const VkPerformanceCounterKHR& counter = counters_[i];
            EXPECT_EQ(counter.scope, VK_PERFORMANCE_COUNTER_SCOPE_COMMAND_KHR);
            EXPECT_EQ(counter.storage, VK_PERFORMANCE_COUNTER_STORAGE_UINT64_KHR);
            const std::string name = descriptions_[i].name;
            EXPECT_EQ(counter.unit == VK_PERFORMANCE_COUNTER_UNIT_BYTES_KHR,
                      name.starts_with("Bytes"));
            EXPECT_STRNE(descriptions_[i].category, "");
            EXPECT_STRNE(descriptions_[i].description, "");
            names.insert(name);
            ids.emplace(std::begin(counter.uuid), std::end(counter.uuid));
        }
        EXPECT_EQ(names.size(), count);
        EXPECT_EQ(ids.size(), count);
        // Some of them; either array may be missing.
        std::array<VkPerformanceCounterDescriptionKHR, 2> some;
        some.fill({.sType = VK_STRUCTURE_TYPE_PERFORMANCE_COUNTER_DESCRIPTION_KHR});
        count = 2;
        EXPECT_EQ(vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR(
                      physical_, family, &count, nullptr, some.data()),
                  VK_INCOMPLETE);
        EXPECT_EQ(count, 2u);
        EXPECT_STREQ(some[1].name, descriptions_[1].name);
    }
}

// Counts commands before, between and behind, in a secondary command buffer as well; the order is
// the application's, and a counter may be asked for twice.
TEST_F(PerformanceQueryTest, CommandsAreCounted) {
    const TestBuffer out = MakeBuffer(64);
    const TestPipeline count = MakePipeline(spirv::kCount, {&out, 1});
    const VkQueryPool pool = MakePool({"Bytes filled", "Workgroups", "Bytes copied", "Dispatches",
                                       "Invocations", "Workgroups", "Matrix commands"},
                                      3);
    const VkCommandBuffer secondary = Begin(0, VK_COMMAND_BUFFER_LEVEL_SECONDARY);
    Bind(secondary, count);
    vkCmdDispatch(secondary, 100, 1, 1);
    vkCmdBeginQuery(secondary, pool, 2, 0);
    vkCmdDispatch(secondary, 10, 1, 1);
    vkCmdEndQuery(secondary, pool, 2);
    vkCmdDispatch(secondary, 100, 1, 1);
    ASSERT_VK(vkEndCommandBuffer(secondary));
    const VkCommandBuffer commands = Begin();
    Bind(commands, count);
    vkCmdDispatch(commands, 7, 1, 1);
    vkCmdBeginQuery(commands, pool, 1, 0);
    vkCmdEndQuery(commands, pool, 1);
    vkCmdBeginQuery(commands, pool, 0, 0);
    vkCmdDispatch(commands, 2, 3, 4);
    vkCmdDispatch(commands, 0, 3, 4);
    Barrier(commands);
    vkCmdFillBuffer(commands, out.handle, out.offset + 64, 48, 1);
    Barrier(commands);
    const VkBufferCopy region{out.offset + 64, out.offset + 128, 32};
    vkCmdCopyBuffer(commands, out.handle, out.handle, 1, &region);
    vkCmdEndQuery(commands, pool, 0);
    vkCmdExecuteCommands(commands, 1, &secondary);
    Bind(commands, count);
    vkCmdDispatch(commands, 7, 1, 1);
    const VkPerformanceQuerySubmitInfoKHR pass{
        .sType = VK_STRUCTURE_TYPE_PERFORMANCE_QUERY_SUBMIT_INFO_KHR, .counterPassIndex = 0};
    const VkSubmitInfo submit{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                              .pNext = &pass,
                              .commandBufferCount = 1,
                              .pCommandBuffers = &commands};
    ASSERT_VK(vkEndCommandBuffer(commands));
    ASSERT_VK(vkQueueSubmit(queues_[0], 1, &submit, VK_NULL_HANDLE));
    ASSERT_VK(vkQueueWaitIdle(queues_[0]));
    EXPECT_THAT(Results(pool, 7, 0), ElementsAre(48, 24, 32, 1, 24, 24, 0));
    EXPECT_THAT(Results(pool, 7, 1), ElementsAre(0, 0, 0, 0, 0, 0, 0));
    EXPECT_THAT(Results(pool, 7, 2), ElementsAre(0, 10, 0, 1, 10, 10, 0));
    // As of a query that was never begun, which nobody may ask for.
    if (Validated()) {
        return;
    }
    vkResetQueryPool(device_, pool, 2, 1);
    std::array<VkPerformanceCounterResultKHR, 21> results;
    results.fill({.uint64 = 9});
    EXPECT_EQ(vkGetQueryPoolResults(device_, pool, 0, 3, sizeof(results), results.data(),
                                    7 * sizeof(results[0]), 0),
              VK_NOT_READY);
    EXPECT_EQ(results[0].uint64, 48u);
    EXPECT_EQ(results[7].uint64, 0u);
    EXPECT_EQ(results[14].uint64, 9u);
}

// By the device, to where only the rules of other queries' results are kept.
TEST_F(PerformanceQueryTest, ResultsAreCopied) {
    const TestBuffer out = MakeBuffer(4);
    const TestBuffer results = MakeBuffer(16);
    const TestPipeline count = MakePipeline(spirv::kCount, {&out, 1});
    const VkQueryPool pool = MakePool({"Workgroups", "Dispatches"}, 2);
    for (int round = 0; round < 2; ++round) {
        VkCommandBuffer commands = Begin();
        vkCmdResetQueryPool(commands, pool, 0, 2);
        Run(commands);
        commands = Begin();
        Bind(commands, count);
        for (uint32_t query = 0; query < 2; ++query) {
            vkCmdBeginQuery(commands, pool, query, 0);
            vkCmdDispatch(commands, 5 + query, 1, 1);
            vkCmdEndQuery(commands, pool, query);
        }
        Run(commands);
        commands = Begin();
        vkCmdCopyQueryPoolResults(commands, pool, 0, 2, results.handle, results.offset + 4, 20,
                                  VK_QUERY_RESULT_WAIT_BIT);
        Barrier(commands);
        std::fill_n(results.words, 16, 77u);
        Run(commands);
        EXPECT_THAT(results.span().first(11), ElementsAre(77, 5, 0, 1, 0, 77, 6, 0, 1, 0, 77));
    }
}

TEST_F(PerformanceQueryTest, PoolsShareACommandBuffer) {
    const TestBuffer out = MakeBuffer(4);
    const TestPipeline count = MakePipeline(spirv::kCount, {&out, 1});
    const VkQueryPool first = MakePool({"Workgroups", "Dispatches"});
    const VkQueryPool second = MakePool({"Workgroups"}, 2);
    const VkCommandBuffer commands = Begin();
    Bind(commands, count);
    vkCmdBeginQuery(commands, first, 0, 0);
    vkCmdDispatch(commands, 1, 1, 1);
    vkCmdDispatch(commands, 300, 1, 1);
    vkCmdEndQuery(commands, first, 0);
    vkCmdBeginQuery(commands, second, 1, 0);
    vkCmdDispatch(commands, 20, 1, 1);
    vkCmdEndQuery(commands, second, 1);
    Run(commands);
    EXPECT_THAT(Results(first, 2), ElementsAre(301, 2));
    EXPECT_THAT(Results(second, 1, 1), ElementsAre(20));
}

// Two queues at once: each query sees its own queue's work, to the last workgroup.
TEST_F(PerformanceQueryTest, QueuesAreCountedApart) {
    constexpr uint32_t kRounds = 20;
    std::array<VkQueryPool, 2> pools;
    std::array<VkCommandBuffer, 2> commands;
    for (uint32_t q = 0; q < 2; ++q) {
        const TestBuffer out = MakeBuffer(4);
        const TestPipeline count = MakePipeline(spirv::kCount, {&out, 1});
        pools[q] = MakePool({"Workgroups", "Dispatches"});
        commands[q] = Begin();
        Bind(commands[q], count);
        vkCmdBeginQuery(commands[q], pools[q], 0, 0);
        for (uint32_t i = 0; i < kRounds; ++i) {
            vkCmdDispatch(commands[q], 1000 + 100 * q, 1, 1);
            Barrier(commands[q]);
        }
        vkCmdEndQuery(commands[q], pools[q], 0);
        ASSERT_VK(vkEndCommandBuffer(commands[q]));
    }
    std::array<VkFence, 2> fences = {MakeFence(), MakeFence()};
    for (uint32_t q = 0; q < 2; ++q) {
        ASSERT_VK(Submit(commands[q], fences[q], q));
    }
    ASSERT_VK(vkWaitForFences(device_, 2, fences.data(), VK_TRUE, UINT64_MAX));
    for (uint32_t q = 0; q < 2; ++q) {
        EXPECT_THAT(Results(pools[q], 2), ElementsAre(kRounds * (1000 + 100 * q), kRounds));
    }
}

// A product of 64 x 64 x 64 is 262,144 multiplications, whatever carries them out.
TEST_F(PerformanceQueryTest, MatrixProductsAreCounted) {
    struct Kind {
        std::span<const uint32_t> spirv;
        std::vector<uint64_t> multiply_adds;  // f16, bf16, int8, f32
    };
    const Kind kinds[] = {{spirv::kMatricesF16, {262'144, 0, 0, 0}},
                          {spirv::kMatricesBf16, {0, 262'144, 0, 0}},
                          {spirv::kMatricesU8S8, {0, 0, 262'144, 0}},
                          {spirv::kMatricesF32, {0, 0, 0, 262'144}}};
    for (const Kind& kind : kinds) {
        std::vector<TestBuffer> buffers;
        for (uint32_t i = 0; i < 4; ++i) {
            buffers.push_back(MakeBuffer(64 * 64));
        }
        const uint32_t values[] = {32, 0, 0, 0};
        const VkSpecializationMapEntry entries[] = {{0, 0, 4}, {1, 4, 4}, {2, 8, 4}, {3, 12, 4}};
        const VkSpecializationInfo specialization{4, entries, sizeof(values), values};
        required_subgroup_size_ = 32;
        const TestPipeline pipeline =
            MakePipeline(kind.spirv, std::span<const TestBuffer>(buffers), &specialization);
        const VkQueryPool pool = MakePool(
            {"Matrix multiply-adds, f16", "Matrix multiply-adds, bf16",
             "Matrix multiply-adds, int8", "Matrix multiply-adds, f32", "Matrix commands",
             "Matrix operands loaded", "Matrix accumulators loaded", "Matrix accumulators stored"});
        const VkCommandBuffer commands = Begin();
        Bind(commands, pipeline);
        const uint32_t sizes[] = {64, 64, 64, 64};
        vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(sizes),
                           sizes);
        vkCmdDispatch(commands, 4, 4, 1);
        Barrier(commands);
        vkCmdBeginQuery(commands, pool, 0, 0);
        vkCmdDispatch(commands, 4, 4, 1);
        vkCmdEndQuery(commands, pool, 0);
        Barrier(commands);
        Run(commands);
        const std::vector<uint64_t> results = Results(pool, 8);
        EXPECT_EQ(std::vector(results.begin(), results.begin() + 4), kind.multiply_adds);
        // Each of 64 products of 16 x 16 x 16 is one command, and has factors of its own.
        EXPECT_EQ(results[5], 128u);
        EXPECT_EQ(results[6], results[7]);
        EXPECT_EQ(results[4], 64 + results[5] + results[6] + results[7]);
    }
}

}  // namespace
}  // namespace fornax::test

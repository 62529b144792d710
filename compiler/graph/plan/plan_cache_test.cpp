// Plans in the cache: found again, never half, and with weights that are stored once.
#include "compiler/graph/plan/plan_cache.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_directory.h"
#include "compiler/graph/plan/test_plan.h"

namespace fornax::graph {
namespace {

// The test's plan with a state that holds a large value at first.
Plan PlanWithWeights(float value, const Hash128& key) {
    Plan plan = MakeTestPlan();
    plan.graph_hash = key.ToHex();
    const TensorType type = {ElementType::kF32, Shape({32 << 10})};
    const Bytes data = Tensor::FromFloats({32 << 10}, std::vector<float>(32 << 10, value)).data;
    plan.blocks.push_back({"large", type, BlockKind::kState, data, nullptr, 0, 4});
    plan.blocks.push_back({"again", type, BlockKind::kState, data, nullptr, 0, 4});
    return plan;
}

size_t Count(const DiskCache& cache, const CacheKind& kind) {
    const std::vector<CacheEntry> entries = cache.List();
    return static_cast<size_t>(std::ranges::count_if(
        entries, [&](const CacheEntry& entry) { return entry.kind == kind.name; }));
}

constexpr Hash128 kKey = {1, 2}, kOther = {3, 4};

TEST(PlanCache, FindsWhatItStored) {
    const TestDirectory directory;
    DiskCache cache(directory.path());
    EXPECT_FALSE(FindPlan(cache, kKey).has_value());
    Plan plan = PlanWithWeights(1, kKey);
    const std::string text = ToText(plan);
    const Bytes before = plan.blocks.back().data;
    ASSERT_TRUE(StorePlan(cache, kKey, plan));
    EXPECT_NE(plan.blocks.back().data->data(), before->data());  // the entry's
    EXPECT_EQ(*plan.blocks.back().data, *before);
    const std::optional<Plan> found = FindPlan(cache, kKey);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(ToText(*found), text);
    EXPECT_EQ(*found->blocks.back().data, *before);
    EXPECT_FALSE(FindPlan(cache, kOther).has_value());
}

TEST(PlanCache, PlansShareWeights) {
    const TestDirectory directory;
    DiskCache cache(directory.path());
    Plan first = PlanWithWeights(1, kKey), second = PlanWithWeights(1, kOther);
    second.name = "for other sizes";
    ASSERT_TRUE(StorePlan(cache, kKey, first));
    ASSERT_TRUE(StorePlan(cache, kOther, second));
    EXPECT_EQ(Count(cache, kWeightCacheKind), 1u);
    Plan trained = PlanWithWeights(2, kKey);
    ASSERT_TRUE(StorePlan(cache, kKey, trained));
    EXPECT_EQ(Count(cache, kWeightCacheKind), 2u);
    EXPECT_EQ(*FindPlan(cache, kKey)->blocks.back().data, *trained.blocks.back().data);
    EXPECT_EQ(*FindPlan(cache, kOther)->blocks.back().data, *second.blocks.back().data);
}

// Entries that the cache takes for whole, and that are no plan or that of another key.
TEST(PlanCache, WhatIsNoPlanOfTheKeyIsNotFound) {
    const TestDirectory directory;
    DiskCache cache(directory.path());
    Plan plan = PlanWithWeights(1, kKey);
    ASSERT_TRUE(StorePlan(cache, kKey, plan));
    std::vector<std::byte> damaged = *cache.Get(kPlanCacheKind, kKey);
    damaged[100] ^= std::byte{1};
    Plan foreign = plan;
    foreign.graph_hash = kOther.ToHex();
    for (const std::vector<std::byte>& entry :
         {damaged, SerializePlan(foreign, kMinWeightEntryBytes).value()}) {
        ASSERT_TRUE(cache.Put(kPlanCacheKind, kKey, entry));
        EXPECT_FALSE(FindPlan(cache, kKey).has_value());
        ASSERT_TRUE(StorePlan(cache, kKey, plan));
        EXPECT_TRUE(FindPlan(cache, kKey).has_value());
    }
}

TEST(PlanCache, PlansWithoutTheirWeightsAreNotFound) {
    const TestDirectory directory;
    DiskCache cache(directory.path());
    Plan plan = PlanWithWeights(1, kKey);
    ASSERT_TRUE(StorePlan(cache, kKey, plan));
    for (const CacheEntry& entry : cache.List()) {
        if (entry.kind == kWeightCacheKind.name) {
            std::filesystem::remove(directory / entry.file_name);
        }
    }
    EXPECT_FALSE(FindPlan(cache, kKey).has_value());
    ASSERT_TRUE(StorePlan(cache, kKey, plan));
    EXPECT_TRUE(FindPlan(cache, kKey).has_value());
    // A file that leaves weights out is no plan file of its own.
    const Result<Plan> alone = ParsePlan(*cache.Get(kPlanCacheKind, kKey));
    ASSERT_FALSE(alone.ok());
    EXPECT_EQ(alone.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(alone.error().message, testing::HasSubstr("131072 bytes"));
}

TEST(PlanCache, DamagedWeightsAreReplaced) {
    const TestDirectory directory;
    DiskCache cache(directory.path());
    Plan plan = PlanWithWeights(1, kKey);
    ASSERT_TRUE(StorePlan(cache, kKey, plan));
    for (const CacheEntry& entry : cache.List()) {
        if (entry.kind == kWeightCacheKind.name) {
            std::fstream file(directory / entry.file_name, std::ios::in | std::ios::out);
            file.seekp(-1, std::ios::end).put('!');
        }
    }
    EXPECT_FALSE(FindPlan(cache, kKey).has_value());
    Plan again = PlanWithWeights(1, kKey);
    ASSERT_TRUE(StorePlan(cache, kKey, again));
    const std::optional<Plan> found = FindPlan(cache, kKey);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(*found->blocks.back().data, *PlanWithWeights(1, kKey).blocks.back().data);
}

TEST(PlanCache, WhatTakesTooMuchIsNotStored) {
    const TestDirectory directory;
    DiskCache small(directory.path(), 100 << 10), none("");
    Plan plan = PlanWithWeights(1, kKey);
    EXPECT_FALSE(StorePlan(small, kKey, plan));
    EXPECT_TRUE(small.List().empty());
    EXPECT_FALSE(StorePlan(none, kKey, plan));
    plan.blocks[0].first = 3;  // an input lives from the beginning
    DiskCache cache(directory.path());
    EXPECT_FALSE(StorePlan(cache, kKey, plan));
    EXPECT_TRUE(cache.List().empty());
}

TEST(PlanCache, WhatTheModelSaysIsKept) {
    const TestDirectory directory;
    DiskCache cache(directory.path());
    Plan plan = PlanWithWeights(1, kKey);
    plan.model_inputs = {{ElementType::kF32, Shape({Symbol("batch"), 8})}};
    plan.fixed_inputs = {0};
    ASSERT_TRUE(StorePlan(cache, kKey, plan));
    const std::optional<Plan> found = FindPlan(cache, kKey);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->model_inputs, plan.model_inputs);
    EXPECT_EQ(found->fixed_inputs, plan.fixed_inputs);
    plan.fixed_inputs = {1};
    EXPECT_FALSE(ValidatePlan(plan).ok());
    plan.fixed_inputs.clear();
    plan.model_inputs[0].element = ElementType::kF64;
    EXPECT_FALSE(ValidatePlan(plan).ok());
}

}  // namespace
}  // namespace fornax::graph

// The plan cache: found again, replaced when damaged, never filled with failures.
#include "compiler/graph/compile_cached.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_directory.h"
#include "compiler/graph/testing/random_graph.h"

namespace fornax::graph {
namespace {

constexpr std::string_view kText = R"(graph "example" {
    symbol n = 4 in 0..100
    %0 = input "x" f32[n,8]
    %1 = constant "w" f32[8] {1, 2, 3, 4, 5, 6, 7, 8}
    %2 = reshape "row" (%1) {shape = [1,8]}
    %3 = broadcast "rows" (%2) {shape = [n,8]}
    %4 = map "sum" (%0, %3) {function = add}
    %5 = reshape "flat" (%4) {shape = [8*n]}
    output "y" %5
})";

Graph Example(std::string_view text = kText) {
    Result<Graph> graph = ParseGraph(text);
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    return *std::move(graph);
}

TEST(CompileCached, FindsWhatItStored) {
    TestDirectory directory;
    DiskCache cache(directory.path());
    const Result<CachedPlan> first = CompileCached(Example(), {}, cache);
    ASSERT_TRUE(first.ok()) << first.error().message;
    EXPECT_FALSE(first->was_cached);
    EXPECT_TRUE(first->is_stored);
    const Result<CachedPlan> second = CompileCached(Example(), {}, cache);
    ASSERT_TRUE(second.ok()) << second.error().message;
    EXPECT_TRUE(second->was_cached);
    EXPECT_EQ(ToText(second->plan), ToText(first->plan));
    const Result<CachedPlan> other = CompileCached(Example(), {.strict = true}, cache);
    ASSERT_TRUE(other.ok()) << other.error().message;
    EXPECT_FALSE(other->was_cached);
}

// A file that the cache takes for whole, and that is no plan or that of another graph.
TEST(CompileCached, ReplacesWhatIsNoPlanOfTheGraph) {
    TestDirectory directory;
    DiskCache cache(directory.path());
    const Result<CachedPlan> first = CompileCached(Example(), {}, cache);
    ASSERT_TRUE(first.ok()) << first.error().message;
    const Hash128 key = *Hash128::FromHex(first->plan.graph_hash);
    Plan foreign = first->plan;
    foreign.graph_hash = Hash128{1, 2}.ToHex();
    std::vector<std::byte> damaged = *cache.Get(kPlanCacheKind, key);
    damaged[100] ^= std::byte{1};
    for (const std::vector<std::byte>& entry : {damaged, SerializePlan(foreign).value()}) {
        ASSERT_TRUE(cache.Put(kPlanCacheKind, key, entry));
        const Result<CachedPlan> again = CompileCached(Example(), {}, cache);
        ASSERT_TRUE(again.ok()) << again.error().message;
        EXPECT_FALSE(again->was_cached);
        EXPECT_EQ(ToText(again->plan), ToText(first->plan));
        EXPECT_TRUE(CompileCached(Example(), {}, cache)->was_cached);
    }
}

TEST(CompileCached, FailuresAreNotCached) {
    TestDirectory directory;
    DiskCache cache(directory.path());
    const std::string_view text = R"(graph "host" {
        %0 = input "x" f64[8]
        %1 = map "e" (%0) {function = exp}
        output "y" %1
    })";
    const Result<CachedPlan> refused = CompileCached(Example(text), {.strict = true}, cache);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
    EXPECT_TRUE(cache.List().empty());
    const Result<CachedPlan> plan = CompileCached(Example(text), {}, cache);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_TRUE(plan->is_stored);
}

TEST(CompileCached, WorksWithoutADirectory) {
    DiskCache cache("");
    const Result<CachedPlan> plan = CompileCached(Example(), {}, cache);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_FALSE(plan->is_stored);
}

// Whatever the compiler makes passes ValidatePlan, and its file gives it back.
TEST(CompileCached, RandomPlansAreStored) {
    for (uint64_t seed = 1; seed <= 300; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Result<Plan> plan = Compile(testing::MakeRandomGraph(seed).graph, {});
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        const Status valid = ValidatePlan(*plan);
        ASSERT_TRUE(valid.ok()) << valid.error().message << "\n" << ToText(*plan);
        const Result<std::vector<std::byte>> file = SerializePlan(*plan);
        ASSERT_TRUE(file.ok()) << file.error().message;
        const Result<Plan> read = ParsePlan(*file);
        ASSERT_TRUE(read.ok()) << read.error().message;
        EXPECT_EQ(ToText(*read), ToText(*plan));
    }
}

}  // namespace
}  // namespace fornax::graph

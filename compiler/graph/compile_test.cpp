// Random graphs: what the passes and the scheduler make of them computes the same.
//
// FORNAX_RANDOM_GRAPHS: how many, from seed FORNAX_RANDOM_SEED on.
#include "compiler/graph/compile.h"

#include <gtest/gtest.h>

#include "base/environment.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/plan/plan_file.h"
#include "compiler/graph/testing/compare_tensors.h"
#include "compiler/graph/testing/interpret_plan.h"
#include "compiler/graph/testing/random_graph.h"

namespace fornax::graph {
namespace {

uint64_t Setting(const char* name, uint64_t otherwise) {
    const std::optional<std::string> text = EnvironmentText(name);
    return text ? std::strtoull(text->c_str(), nullptr, 10) : otherwise;
}

// What the plan of a graph computes in runs one after the other is what the interpreter does.
void ExpectTheSame(std::string_view text, const std::vector<Tensor>& inputs, int runs = 1) {
    const Result<Graph> graph = ParseGraph(text);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const Result<Plan> plan = Compile(*graph, {});
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_TRUE(ValidatePlan(*plan).ok()) << ValidatePlan(*plan).error().message;
    States states;
    testing::PlanStates plan_states;
    for (int run = 0; run < runs; ++run) {
        const Result<std::vector<Tensor>> expected = Interpret(*graph, inputs, {.states = &states});
        ASSERT_TRUE(expected.ok()) << expected.error().message;
        const Result<std::vector<Tensor>> actual =
            testing::InterpretPlan(*plan, inputs, {}, {}, &plan_states);
        ASSERT_TRUE(actual.ok()) << actual.error().message;
        for (size_t i = 0; i < expected->size(); ++i) {
            EXPECT_EQ(testing::Difference((*actual)[i], (*expected)[i], 0), "")
                << "output " << i << " of run " << run;
        }
    }
}

TEST(Compile, StatesChangePlaces) {
    ExpectTheSame(R"(graph "example" {
    %0 = input "x" f32[2]
    %1 = read_state "a" () {state = "a", type = f32[2]}
    %2 = read_state "b" () {state = "b", type = f32[2]}
    %3 = read_state "c" () {state = "c", type = f32[2]}
    %4 = map "sum" (%2, %0) {function = add}
    write_state "to c" (%4) {state = "c"}
    write_state "to b" (%1) {state = "b"}
    write_state "to a" (%3) {state = "a"}
    output "a" %1
    output "b" %2
})",
                  {Tensor::FromFloats({2}, std::vector<float>{1, 2})}, 4);
}

TEST(Compile, AStateMayKeepItsValue) {
    ExpectTheSame(R"(graph "example" {
    %0 = read_state "a" () {state = "a", type = f32[2]}
    write_state "the same" (%0) {state = "a"}
    output "a" %0
})",
                  {});
}

TEST(Compile, RandomGraphsComputeTheSame) {
    const uint64_t first = Setting("FORNAX_RANDOM_SEED", 1);
    const uint64_t count = Setting("FORNAX_RANDOM_GRAPHS", 400);
    size_t all_runs = 0;
    for (uint64_t seed = first; seed < first + count; ++seed) {
        size_t runs = 0;
        EXPECT_EQ(testing::CheckRandomGraphOnHost(seed, &runs), "");
        all_runs += runs;
    }
    // Symbols are there, and plans serve more than the sizes that they were made for.
    EXPECT_GT(all_runs, count * 3 / 2);
}

// Whatever the compiler makes passes ValidatePlan, and its file gives it back.
TEST(Compile, PlansPassTheRulesAndFilesGiveThemBack) {
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

// Random graphs: what the passes and the scheduler make of them computes the same.
#include "compiler/graph/compile.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/testing/compare_tensors.h"
#include "compiler/graph/testing/interpret_plan.h"
#include "compiler/graph/testing/random_graph.h"

namespace fornax::graph {
namespace {

constexpr uint64_t kGraphs = 400;

TEST(Compile, RandomGraphsComputeTheSame) {
    for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
        const testing::RandomGraph random = testing::MakeRandomGraph(seed);
        SCOPED_TRACE("seed " + std::to_string(seed));
        ASSERT_TRUE(Verify(random.graph).ok()) << Verify(random.graph).error().message;
        const Result<std::vector<Tensor>> expected = Interpret(random.graph, random.inputs);
        ASSERT_TRUE(expected.ok()) << expected.error().message;
        const Result<Plan> plan = Compile(random.graph, {});
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        const Result<std::vector<Tensor>> actual = testing::InterpretPlan(*plan, random.inputs, {});
        ASSERT_TRUE(actual.ok()) << actual.error().message;
        ASSERT_EQ(actual->size(), expected->size());
        for (size_t i = 0; i < expected->size(); ++i) {
            const std::string difference = testing::Difference(
                (*actual)[i], (*expected)[i], random.exact[i] ? 0 : random.tolerance[i]);
            EXPECT_EQ(difference, "") << "output " << i;
        }
    }
}

}  // namespace
}  // namespace fornax::graph

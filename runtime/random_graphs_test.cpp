// Random graphs, compiled and played on a device, against the interpreter.
//
// FORNAX_RANDOM_GRAPHS: how many, from seed FORNAX_RANDOM_SEED on.
#include <gtest/gtest.h>

#include "base/environment.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/testing/compare_tensors.h"
#include "compiler/graph/testing/random_graph.h"
#include "runtime/player_fixture.h"

namespace fornax::runtime {
namespace {

uint64_t Setting(const char* name, uint64_t otherwise) {
    const std::optional<std::string> text = EnvironmentText(name);
    return text ? std::strtoull(text->c_str(), nullptr, 10) : otherwise;
}

class RandomGraphs : public PlayerTest {};

TEST_F(RandomGraphs, ComputeWhatTheInterpreterDoes) {
    const uint64_t first = Setting("FORNAX_RANDOM_SEED", 1);
    const uint64_t count = Setting("FORNAX_RANDOM_GRAPHS", 150);
    for (uint64_t seed = first; seed < first + count; ++seed) {
        const graph::testing::RandomGraph random = graph::testing::MakeRandomGraph(seed);
        SCOPED_TRACE("seed " + std::to_string(seed));
        const Result<std::vector<graph::Tensor>> expected =
            graph::Interpret(random.graph, random.inputs);
        ASSERT_TRUE(expected.ok()) << expected.error().message;
        Result<graph::Plan> plan = graph::Compile(random.graph, {});
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        const Result<std::shared_ptr<const Program>> program =
            Program::Create(device_, std::move(*plan), {});
        ASSERT_TRUE(program.ok()) << program.error().message;
        const Result<RunResult> actual = Session(*program).Run(random.inputs);
        ASSERT_TRUE(actual.ok()) << actual.error().message;
        ASSERT_EQ(actual->outputs.size(), expected->size());
        for (size_t i = 0; i < expected->size(); ++i) {
            EXPECT_EQ(graph::testing::Difference(actual->outputs[i], (*expected)[i],
                                                 random.exact[i] ? 0 : random.tolerance[i]),
                      "")
                << "output " << i;
        }
    }
}

}  // namespace
}  // namespace fornax::runtime

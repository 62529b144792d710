// Random graphs, compiled and played on a device, against the interpreter.
//
// FORNAX_RANDOM_GRAPHS: how many, from seed FORNAX_RANDOM_SEED on.
#include <gtest/gtest.h>

#include "base/environment.h"
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
    const graph::testing::LoadPlan load =
        [this](graph::Plan plan) -> Result<graph::testing::RunPlan> {
        FORNAX_ASSIGN_OR_RETURN(const std::shared_ptr<const Program> program,
                                Program::Create(device_, std::move(plan), {}));
        return graph::testing::RunPlan(
            [session = std::make_shared<Session>(program)](
                std::span<const graph::Tensor> inputs) -> Result<std::vector<graph::Tensor>> {
                FORNAX_ASSIGN_OR_RETURN(RunResult result, session->Run(inputs));
                return std::move(result.outputs);
            });
    };
    for (uint64_t seed = first; seed < first + count; ++seed) {
        EXPECT_EQ(graph::testing::CheckRandomGraph(seed, load), "");
    }
}

}  // namespace
}  // namespace fornax::runtime

// Random graphs: what the passes and the scheduler make of them computes the same.
//
// FORNAX_RANDOM_GRAPHS: how many, from seed FORNAX_RANDOM_SEED on.
#include "compiler/graph/compile.h"

#include <gtest/gtest.h>

#include "base/environment.h"
#include "compiler/graph/testing/random_graph.h"

namespace fornax::graph {
namespace {

uint64_t Setting(const char* name, uint64_t otherwise) {
    const std::optional<std::string> text = EnvironmentText(name);
    return text ? std::strtoull(text->c_str(), nullptr, 10) : otherwise;
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

}  // namespace
}  // namespace fornax::graph

// What --explain says of small graphs: which values lie in memory, why, and who reads them.
#include "compiler/graph/schedule/boundaries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "compiler/graph/build/normalise.h"
#include "compiler/graph/build/product.h"
#include "compiler/graph/build/recurrent.h"
#include "compiler/graph/compile.h"

namespace fornax::graph {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

class BoundariesTest : public ::testing::Test {
  protected:
    Val Named(const std::string& name, const std::function<Val()>& build) {
        b.SetName(name);
        return build();
    }
    std::vector<Boundary> Explain(const Vals& outputs) {
        for (size_t i = 0; i < outputs.size(); ++i) {
            graph.AddOutput(fmt::format("out{}", i), outputs[i].id());
        }
        std::vector<Boundary> boundaries;
        const Result<Plan> plan = Compile(std::move(graph), {}, &boundaries);
        EXPECT_TRUE(plan.ok()) << plan.error().message;
        return boundaries;
    }

    // The reason of the first boundary of this node.
    static std::string ReasonOf(const std::vector<Boundary>& boundaries, const std::string& node) {
        for (const Boundary& boundary : boundaries) {
            if (boundary.node == node) {
                return boundary.reason;
            }
        }
        return "it is no boundary";
    }

    Graph graph{"test"};
    Builder b{graph};
    const Val x = b.Input("x", {ElementType::kF32, {64, 96}});
};

TEST_F(BoundariesTest, AChainIsOneKernelWithAllItsNodes) {
    const Val product = Named("scale", [&] { return x * x; });
    const Val y = Named("soft", [&] { return Softmax(product, 1); });
    const std::vector<Boundary> boundaries = Explain({y});
    ASSERT_EQ(boundaries.size(), 1u);
    EXPECT_EQ(boundaries[0].node, "soft");
    EXPECT_EQ(boundaries[0].type.ToString(), "f32[64,96]");
    EXPECT_THAT(boundaries[0].nodes, ElementsAre("soft", "scale"));
    EXPECT_THAT(boundaries[0].readers, ElementsAre("outputs"));
    EXPECT_THAT(boundaries[0].reason, HasSubstr("output"));
}

TEST_F(BoundariesTest, AProductThatTwoKernelsReadSaysSo) {
    const Val weight = b.Input("w", {ElementType::kF32, {96, 32}});
    const Val product = Named("product", [&] { return MatMul(x, weight); });
    const Val left = Named("left", [&] { return Softmax(product, 1); });
    const Val right = Named("right", [&] { return Softmax(product, 0); });
    const std::vector<Boundary> boundaries = Explain({left, right});
    ASSERT_FALSE(boundaries.empty());
    EXPECT_EQ(boundaries[0].node, "product");
    EXPECT_GE(boundaries[0].readers.size(), 2u);
    EXPECT_THAT(boundaries[0].reason, HasSubstr("kernels read it"));
}

TEST_F(BoundariesTest, WhatTheHostDoesSaysWhy) {
    const Val text = b.HostCall("strings", {}, {Named("abs", [&] { return x + x; })},
                                {{ElementType::kI64, {64}}})[0];
    const std::vector<Boundary> boundaries = Explain({text});
    ASSERT_EQ(boundaries.size(), 2u);
    EXPECT_EQ(boundaries[0].node, "abs");
    EXPECT_EQ(boundaries[0].reason, "the host reads it");
    EXPECT_THAT(boundaries[1].reason, HasSubstr("the host computes it"));
}

// One kernel reads each of these, and each stays alone for another reason.
TEST_F(BoundariesTest, AReductionThatJoinsNoReaderSaysWhatWouldHappenThere) {
    const Val square = b.Input("s", {ElementType::kF32, {96, 96}});
    const Val twice = Named("twice", [&] { return MatMul(x, square); });
    const Val product = Named("product", [&] { return MatMul(twice, square); });
    const Val other = b.Input("o", {ElementType::kF32, {96, 96}});
    const Val more = b.Input("m", {ElementType::kF32, {64, 96}});
    const Val first = Named("first", [&] { return MatMul(x, other); });
    const Val second = Named("second", [&] { return MatMul(more, square); });
    const Val both = Named("both", [&] { return first + second; });
    Vals rows;
    for (int i = 0; i < 24; ++i) {
        rows.push_back(b.Input(fmt::format("r{}", i), {ElementType::kF32, {64}}));
    }
    const Val total = Named("total", [&] { return Sum(x, {1}, false); });
    const Val many = Named("many", [&] {
        Val sum = total;
        for (const Val row : rows) {
            sum = sum * row;
        }
        return sum;
    });
    const std::vector<Boundary> boundaries = Explain({product, both, many});
    EXPECT_EQ(ReasonOf(boundaries, "twice"),
              "in the one kernel that reads it, it would be computed more than once");
    EXPECT_EQ(ReasonOf(boundaries, "first"),
              "in the one kernel that reads it, a product, which it is or holds, would not be "
              "computed in tiles");
    EXPECT_EQ(ReasonOf(boundaries, "total"),
              "in the one kernel that reads it, it would be more loops, or more to read from "
              "memory, than one kernel may have");
}

TEST_F(BoundariesTest, TheInputProductOfALoopOverTimeSaysThatTheLoopReadsIt) {
    const Val steps = b.Input("steps", {ElementType::kF32, {10, 1, 16}});
    const Val w = b.Input("w", {ElementType::kF32, {1, 32, 16}});
    const Val r = b.Input("r", {ElementType::kF32, {1, 32, 8}});
    RecurrentOptions options;
    options.reversed = {false};
    options.activations = {{"sigmoid"}, {"tanh"}, {"tanh"}};
    const Val y = Named("lstm", [&] {
        return Recurrent({steps, w, r, Val(), Val(), Val(), Val(), Val()}, options).y;
    });
    const std::vector<Boundary> boundaries = Explain({y});
    EXPECT_THAT(boundaries, Contains(Field("reason", &Boundary::reason,
                                           "a loop, which is one kernel, reads a part of it in "
                                           "each of its iterations")));
    for (const Boundary& boundary : boundaries) {
        EXPECT_NE(boundary.reason, "contract has kernels of its own");
    }
}

TEST_F(BoundariesTest, WhatASortKeepsBetweenItsKernelsIsListed) {
    const Val few = Named("few", [&] { return Sort(x, 1, false, 96).values; });
    const Val rows = b.Input("rows", {ElementType::kF32, {4, 1000}});
    const Val all = Named("all", [&] { return Sort(rows, 1, false, 1000).values; });
    const std::vector<Boundary> boundaries = Explain({few, all});
    for (const auto& [node, kept] :
         {std::pair("few", "ranks"), {"all", "keys"}, {"all", "positions"}}) {
        EXPECT_THAT(boundaries,
                    Contains(AllOf(Field("node", &Boundary::node, node),
                                   Field("operation", &Boundary::operation, kept),
                                   Field("readers", &Boundary::readers, ElementsAre(node)))));
    }
}

TEST_F(BoundariesTest, TheCopyOfAStateIsListed) {
    const TensorType type = {ElementType::kF32, {64, 96}};
    const Val before = b.Add(op::ReadState{"memory", type}, {})[0];
    b.Add(op::WriteState{"memory"}, {x + before});
    const std::vector<Boundary> boundaries = Explain({before});
    EXPECT_THAT(boundaries,
                Contains(AllOf(Field("operation", &Boundary::operation, "copy"),
                               Field("readers", &Boundary::readers, ElementsAre("outputs")),
                               Field("reason", &Boundary::reason, HasSubstr("memory")))));
}

}  // namespace
}  // namespace fornax::graph

// What --explain says of small graphs: which values lie in memory, why, and who reads them.
#include "compiler/graph/schedule/boundaries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "compiler/graph/build/normalise.h"
#include "compiler/graph/build/product.h"
#include "compiler/graph/compile.h"

namespace fornax::graph {
namespace {

using ::testing::ElementsAre;
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

}  // namespace
}  // namespace fornax::graph

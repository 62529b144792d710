// Building, compacting and verifying graphs.
#include "compiler/legacy_graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/legacy_graph/testing/graph_builder.h"

namespace fornax::legacy_graph {
namespace {

using testing::GraphBuilder;
using ::testing::HasSubstr;

TEST(Graph, AddNodeRefusesOperandsThatDoNotFit) {
    GraphBuilder b;
    const ValueId x = b.Input("x", {2, 3});
    const Result<ValueId> product = b.graph.AddNode("mm", op::MatMul{}, {x, x});
    ASSERT_FALSE(product.ok());
    EXPECT_EQ(product.error().message, "the inner dimensions of 2x3 and 2x3 differ");
    EXPECT_TRUE(b.graph.nodes().empty());
}

TEST(Graph, CompactRemovesWhatIsNotUsedAndKeepsInputs) {
    GraphBuilder b;
    const ValueId unused_input = b.Input("unused", {4});
    const ValueId x = b.Input("x", {4});
    b.Constant("dead constant", {4});
    const ValueId dead = b.Relu("dead", x);
    b.Relu("dead too", dead);
    const ValueId c = b.Constant("c", {4});
    b.graph.AddOutput("y", b.Add("add", x, c));
    b.graph.AddOutput("x again", x);
    b.graph.Compact();
    EXPECT_EQ(ToText(b.graph),
              "%0 unused: f32[4] = input\n"
              "%1 x: f32[4] = input\n"
              "%2 c: f32[4] = constant\n"
              "%3 add: f32[4] = binary(%1, %2) function=add\n"
              "return y=%3, x again=%1\n");
    EXPECT_TRUE(Verify(b.graph).ok());
    EXPECT_EQ(b.graph.inputs()[0], unused_input);
}

TEST(Graph, NamesBecomePrintable) {
    GraphBuilder b("net\x1B");
    const ValueId x = b.Input("x\n", {4});
    b.graph.AddOutput("y\x07", b.Relu("relu\xFF", x));
    EXPECT_EQ(b.graph.name(), "net?");
    EXPECT_EQ(ToText(b.graph),
              "%0 x?: f32[4] = input\n%1 relu?: f32[4] = unary(%0) activation=relu\n"
              "return y?=%1\n");
}

TEST(Verify, FindsBrokenGraphs) {
    auto make = [](GraphBuilder& b) {
        const ValueId x = b.Input("x", {4});
        const ValueId y = b.Relu("first", x);
        b.graph.AddOutput("y", b.Relu("second", y));
    };
    {
        GraphBuilder b;
        make(b);
        EXPECT_TRUE(Verify(b.graph).ok());
        b.graph.MutableNode(NodeId(0)).operands[0] = b.graph.nodes()[1].result;
        EXPECT_THAT(Verify(b.graph).error().message, HasSubstr("before it is computed"));
    }
    {
        GraphBuilder b;
        make(b);
        b.graph.MutableNode(NodeId(1)).operands[0] = ValueId(99);
        EXPECT_THAT(Verify(b.graph).error().message, HasSubstr("uses value 99"));
    }
    {
        GraphBuilder b;
        make(b);
        b.graph.MutableNode(NodeId(1)).operation = op::Reshape{testing::ShapeOf({2, 2})};
        EXPECT_THAT(Verify(b.graph).error().message, HasSubstr("computes f32[2x2]"));
    }
    {
        GraphBuilder b;
        make(b);
        b.graph.MutableNode(NodeId(1)).result = b.graph.nodes()[0].result;
        EXPECT_THAT(Verify(b.graph).error().message, HasSubstr("is not the result"));
    }
    {
        GraphBuilder b;
        make(b);
        b.graph.MutableOutput(0).value = ValueId(99);
        EXPECT_THAT(Verify(b.graph).error().message, HasSubstr("output y"));
    }
}

}  // namespace
}  // namespace fornax::legacy_graph

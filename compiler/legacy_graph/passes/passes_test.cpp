// What the passes make of small graphs, as exact text.
#include "compiler/legacy_graph/passes/passes.h"

#include <gtest/gtest.h>

#include "compiler/legacy_graph/testing/graph_builder.h"

namespace fornax::legacy_graph {
namespace {

using testing::GraphBuilder;

// Runs one pass, checks that the graph is still valid, and returns its text.
std::string After(void (*pass)(Graph&), Graph& graph) {
    EXPECT_TRUE(Verify(graph).ok());
    pass(graph);
    graph.Compact();
    const Status status = Verify(graph);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
    return ToText(graph);
}

TEST(Fuse, ConvolutionTakesBiasAndActivation) {
    GraphBuilder b;
    const ValueId x = b.Input("x", {1, 2, 4, 4});
    const ValueId conv = b.Conv3x3("conv", x, b.Constant("w", {3, 2, 3, 3}));
    const ValueId sum = b.Add("add", conv, b.Constant("b", {3, 1, 1}));
    b.graph.AddOutput("y", b.Relu("relu", sum));
    EXPECT_EQ(After(Fuse, b.graph),
              "%0 x: f32[1x2x4x4] = input\n"
              "%1 w: f32[3x2x3x3] = constant\n"
              "%2 relu: f32[1x3x4x4] = conv(%0, %1, %3) kernel=3x3 pads=[1,1,1,1] group=1 "
              "activation=relu\n"
              "%3 conv.bias: f32[3] = constant\n"
              "return y=%2\n");
    EXPECT_EQ(b.graph.nodes()[0].name, "conv+add+relu");
    EXPECT_EQ(Floats(b.graph.values()[3])[2], 2.0f);
}

TEST(Fuse, ConvolutionTakesFactorsPerChannel) {
    GraphBuilder b;
    const ValueId x = b.Input("x", {1, 1, 4, 4});
    const ValueId conv = b.Conv3x3("conv", x, b.Constant("w", {2, 1, 3, 3}, 1, 0));
    const ValueId factor = b.Constant("f", {1, 2, 1, 1}, 3, 4);  // 3 and 7
    b.graph.AddOutput("y", b.Node("scale", op::Binary{BinaryFunction::kMul, {}}, {factor, conv}));
    EXPECT_EQ(After(Fuse, b.graph),
              "%0 x: f32[1x1x4x4] = input\n"
              "%1 scale: f32[1x2x4x4] = conv(%0, %2) kernel=3x3 pads=[1,1,1,1] group=1\n"
              "%2 w.scaled: f32[2x1x3x3] = constant\n"
              "return y=%1\n");
    EXPECT_EQ(Floats(b.graph.values()[2])[0], 3.0f);
    EXPECT_EQ(Floats(b.graph.values()[2])[9], 7.0f);
}

TEST(Fuse, MatrixProductTakesItsRow) {
    GraphBuilder b;
    const ValueId x = b.Input("x", {5, 2});
    const ValueId product = b.Node("mm", op::MatMul{}, {x, b.Constant("w", {2, 3})});
    const ValueId sum = b.Add("add", b.Constant("b", {1, 3}), product);
    b.graph.AddOutput("y", b.Node("tanh", op::Unary{{UnaryFunction::kTanh}}, {sum}));
    EXPECT_EQ(After(Fuse, b.graph),
              "%0 x: f32[5x2] = input\n"
              "%1 w: f32[2x3] = constant\n"
              "%2 tanh: f32[5x3] = matmul(%0, %1, %3) activation=tanh\n"
              "%3 mm.bias: f32[3] = constant\n"
              "return y=%2\n");
}

TEST(Fuse, KeepsResultsWithOtherUses) {
    GraphBuilder b;
    const ValueId x = b.Input("x", {2, 2});
    const ValueId product = b.Node("mm", op::MatMul{}, {x, x});
    b.graph.AddOutput("y", b.Relu("relu", product));
    b.graph.AddOutput("z", product);
    EXPECT_EQ(After(Fuse, b.graph),
              "%0 x: f32[2x2] = input\n"
              "%1 mm: f32[2x2] = matmul(%0, %0)\n"
              "%2 relu: f32[2x2] = unary(%1) activation=relu\n"
              "return y=%2, z=%1\n");
}

TEST(Fuse, KeepsColumnsAndBroadcastsThatGrow) {
    GraphBuilder b;
    const ValueId x = b.Input("x", {3, 2});
    const ValueId product = b.Node("mm", op::MatMul{}, {x, b.Constant("w", {2, 3})});
    const ValueId column = b.Add("column", product, b.Constant("c", {3, 1}));
    const ValueId grown =
        b.Add("grown", b.Node("mm2", op::MatMul{}, {column, x}), b.Constant("g", {4, 1, 1}));
    b.graph.AddOutput("y", grown);
    const std::string before = ToText(b.graph);
    EXPECT_EQ(After(Fuse, b.graph), before);
}

TEST(Fuse, DoesNotMoveAFactorPastAnActivation) {
    GraphBuilder b;
    const ValueId x = b.Input("x", {1, 1, 4, 4});
    const ValueId relu = b.Relu("relu", b.Conv3x3("conv", x, b.Constant("w", {2, 1, 3, 3})));
    b.graph.AddOutput("y", b.Add("add", relu, b.Constant("b", {2, 1, 1})));
    EXPECT_EQ(After(Fuse, b.graph),
              "%0 x: f32[1x1x4x4] = input\n"
              "%1 w: f32[2x1x3x3] = constant\n"
              "%2 relu: f32[1x2x4x4] = conv(%0, %1) kernel=3x3 pads=[1,1,1,1] group=1 "
              "activation=relu\n"
              "%3 b: f32[2x1x1] = constant\n"
              "%4 add: f32[1x2x4x4] = binary(%2, %3) function=add\n"
              "return y=%4\n");
}

TEST(Simplify, RemovesWhatChangesNothing) {
    GraphBuilder b;
    const ValueId x = b.Input("x", {2, 3});
    ValueId y = b.Node("same", op::Reshape{testing::ShapeOf({2, 3})}, {x});
    y = b.Node("order", op::Transpose{{0, 1}}, {y});
    y = b.Node("identity", op::Unary{}, {y});
    y = b.Node("flat", op::Reshape{testing::ShapeOf({6})}, {y});
    y = b.Node("wide", op::Reshape{testing::ShapeOf({1, 6})}, {y});
    b.graph.AddOutput("y", b.Relu("relu", y));
    EXPECT_EQ(After(Simplify, b.graph),
              "%0 x: f32[2x3] = input\n"
              "%1 wide: f32[1x6] = reshape(%0) shape=1x6\n"
              "%2 relu: f32[1x6] = unary(%1) activation=relu\n"
              "return y=%2\n");
}

TEST(FoldConstants, ComputesOnTheHost) {
    GraphBuilder b;
    const ValueId matrix = b.Constant("m", {2, 3}, -1, 1);  // -1 0 1 / 2 3 4
    const ValueId turned = b.Node("turn", op::Transpose{{1, 0}}, {matrix});
    const ValueId sum = b.Add("add", turned, b.Constant("row", {2}, 10, 10));
    const ValueId y = b.Relu("relu", b.Node("neg", op::Unary{{UnaryFunction::kNegate}}, {sum}));
    b.graph.AddOutput("y", y);
    b.graph.AddOutput("z", sum);
    EXPECT_EQ(After(FoldConstants, b.graph),
              "%0 add: f32[3x2] = constant\n"
              "%1 relu: f32[3x2] = constant\n"
              "return y=%1, z=%0\n");
    const std::span<const float> values = Floats(b.graph.values()[0]);
    EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
              (std::vector<float>{9, 22, 10, 23, 11, 24}));
}

TEST(FoldConstants, LeavesHugeResultsToTheDevice) {
    GraphBuilder b;
    const ValueId column = b.Constant("c", {1024, 1}), row = b.Constant("r", {1, 1024});
    b.graph.AddOutput("y", b.Add("add", column, row));
    EXPECT_EQ(After(FoldConstants, b.graph),
              "%0 c: f32[1024x1] = constant\n"
              "%1 r: f32[1x1024] = constant\n"
              "%2 add: f32[1024x1024] = binary(%0, %1) function=add\n"
              "return y=%2\n");
}

}  // namespace
}  // namespace fornax::legacy_graph

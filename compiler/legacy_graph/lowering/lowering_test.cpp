// Plans of small graphs as exact text: kernels, sets, memory and barriers.
#include "compiler/legacy_graph/lowering/lowering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/legacy_graph/testing/graph_builder.h"

namespace fornax::legacy_graph {
namespace {

using testing::GraphBuilder;
using ::testing::HasSubstr;

std::string Lowered(const Graph& graph) {
    Result<Plan> plan = Lower(graph);
    return plan.ok() ? ToText(*plan) : plan.error().message;
}

TEST(Lower, ProductAndSoftmax) {
    GraphBuilder b;
    const ValueId x = b.Input("x", {4, 3});
    const ValueId product = b.Node("mm", op::MatMul{}, {x, b.Constant("w", {3, 2})});
    b.graph.AddOutput("y", b.Node("softmax", op::Softmax{1}, {product}));
    EXPECT_EQ(Lowered(b.graph),
              "plan test of graph \n"
              "input x: f32[4x3] in tensor 1\n"
              "output y: f32[4x2] in tensor 3\n"
              "region 768 bytes: weights 24, arena 512 (peak live 512, unshared 112)\n"
              "tensor 0: constant w f32[3x2] at 0, 24 bytes, steps 0..2\n"
              "tensor 1: input x f32[4x3] at 256, 48 bytes, steps 0..0\n"
              "tensor 2: intermediate mm f32[4x2] at 512, 32 bytes, steps 0..1\n"
              "tensor 3: output softmax f32[4x2] at 256, 32 bytes, steps 1..2\n"
              "set 0: tensors 1, 0, 0, 2\n"
              "set 1: tensors 2, 3\n"
              "dispatch 0: matmul for mm, grid 1x1x1, set 0\n"
              "    constants 2 32 0 0 0 4 3 2 0 1 1 1 1 0 0 0 0 0 0 0 0\n"
              "barrier\n"
              "dispatch 1: softmax for softmax, grid 1x1x1, set 1\n"
              "    constants 64 1 4 2 1\n");
}

TEST(Lower, ReshapesShareStorage) {
    GraphBuilder b;
    const ValueId x = b.Input("x", {2, 3});
    const ValueId flat = b.Node("flat", op::Reshape{testing::ShapeOf({6})}, {b.Relu("relu", x)});
    b.graph.AddOutput("y", b.Relu("again", flat));
    b.graph.AddOutput("z", flat);
    const Plan plan = Lower(b.graph).value();
    EXPECT_EQ(plan.dispatches.size(), 2u);
    ASSERT_EQ(plan.outputs.size(), 2u);
    const PlanPort& z = plan.outputs[1];
    EXPECT_EQ(z.type.shape.ToString(), "6");
    EXPECT_EQ(plan.tensors[z.tensor].type.shape.ToString(), "2x3");
    EXPECT_EQ(plan.tensors[z.tensor].last_step, 2u) << "an output must live to the end";
}

TEST(Lower, InputsAndConstantsCanBeOutputs) {
    GraphBuilder b;
    const ValueId x = b.Input("x", {2, 3});
    b.graph.AddOutput("x", x);
    b.graph.AddOutput("c", b.Constant("c", {5}));
    b.graph.AddOutput("y", b.Relu("relu", x));
    const Plan plan = Lower(b.graph).value();
    EXPECT_EQ(plan.tensors[plan.outputs[0].tensor].kind, TensorKind::kInput);
    EXPECT_EQ(plan.tensors[plan.outputs[0].tensor].last_step, 1u);
    EXPECT_EQ(plan.tensors[plan.outputs[1].tensor].kind, TensorKind::kConstant);
}

TEST(Lower, IndependentDispatchesNeedNoBarrier) {
    GraphBuilder b;
    const ValueId x = b.Input("x", {8});
    const ValueId left = b.Relu("left", x), right = b.Relu("right", x);
    b.graph.AddOutput("y", b.Add("add", left, right));
    const Plan plan = Lower(b.graph).value();
    EXPECT_FALSE(plan.dispatches[0].barrier_before);
    EXPECT_FALSE(plan.dispatches[1].barrier_before);
    EXPECT_TRUE(plan.dispatches[2].barrier_before);
}

TEST(Lower, PartsOfAConcatenationRunTogether) {
    GraphBuilder b;
    const ValueId x = b.Input("x", {4, 2}), y = b.Input("y", {4, 3});
    b.graph.AddOutput("z", b.Node("concat", op::Concat{1}, {x, y}));
    const Plan plan = Lower(b.graph).value();
    ASSERT_EQ(plan.dispatches.size(), 2u);
    EXPECT_FALSE(plan.dispatches[1].barrier_before);
}

TEST(Lower, SelectsKernelsByShape) {
    auto kernel_of = [](GraphBuilder& b, ValueId y) {
        b.graph.AddOutput("y", y);
        return Lower(b.graph).value().dispatches[0].kernel;
    };
    {
        GraphBuilder b;
        const ValueId x = b.Input("x", {1, 8});
        EXPECT_EQ(kernel_of(b, b.Node("mm", op::MatMul{}, {x, b.Constant("w", {8, 9})})),
                  KernelId::kMatMulFewRows);
    }
    {
        GraphBuilder b;
        const ValueId x = b.Input("x", {1, 8, 4, 4});
        op::Conv conv;
        conv.group = 8;
        EXPECT_EQ(kernel_of(b, b.Node("conv", conv, {x, b.Constant("w", {8, 1, 1, 1})})),
                  KernelId::kConv2dDepthwise);
    }
    {
        // One right matrix for a batch: its rows are rows of one product.
        GraphBuilder b;
        const ValueId x = b.Input("x", {6, 1, 8});
        EXPECT_EQ(kernel_of(b, b.Node("mm", op::MatMul{}, {x, b.Constant("w", {8, 9})})),
                  KernelId::kMatMul);
    }
}

TEST(Lower, RefusesWhatNoKernelComputes) {
    GraphBuilder b;
    const ValueId shape = b.graph.AddInput("shape", {DataType::kI64, testing::ShapeOf({2})});
    b.graph.AddOutput("y", shape);
    EXPECT_THAT(Lowered(b.graph), HasSubstr("The value shape is i64[2]"));

    GraphBuilder batches;
    const ValueId x = batches.Input("x", {70000, 2, 2});
    batches.graph.AddOutput("y", batches.Node("squares", op::MatMul{}, {x, x}));
    EXPECT_THAT(Lowered(batches.graph), HasSubstr("The node squares (matmul): a grid of 70000"));
}

}  // namespace
}  // namespace fornax::legacy_graph

// Shapes: their limits, broadcasting, and the result type of every operator, right and wrong
// operands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/legacy_graph/operators.h"
#include "compiler/legacy_graph/testing/graph_builder.h"

namespace fornax::legacy_graph {
namespace {

using ::testing::HasSubstr;
using testing::ShapeOf;
using Dims = std::vector<int64_t>;

// The inferred type as text, or the error.
std::string Infer(const Operator& operation, const std::vector<Dims>& operands) {
    std::vector<TensorType> types;
    for (const Dims& dims : operands) {
        types.push_back({DataType::kF32, ShapeOf(dims)});
    }
    Result<TensorType> type = InferType(operation, types);
    return type.ok() ? type->ToString() : type.error().message;
}

op::Conv Conv(std::array<uint32_t, 2> kernel, uint32_t group = 1) {
    op::Conv conv;
    conv.window.kernel = kernel;
    conv.group = group;
    return conv;
}

TEST(Shape, HasLimits) {
    EXPECT_FALSE(Shape::Make(Dims{0}).ok());
    EXPECT_FALSE(Shape::Make(Dims{-1}).ok());
    EXPECT_FALSE(Shape::Make(Dims{1, 1, 1, 1, 1, 1, 1}).ok());
    EXPECT_TRUE(Shape::Make(Dims{1 << 15, 1 << 15}).ok());
    EXPECT_FALSE(Shape::Make(Dims{1 << 15, (1 << 15) + 1}).ok());
    EXPECT_FALSE(Shape::Make(Dims{INT64_MAX, INT64_MAX, INT64_MAX}).ok());
    EXPECT_EQ(Shape().elements(), 1u);
    EXPECT_EQ(Shape().ToString(), "scalar");
}

TEST(Shape, Broadcasts) {
    EXPECT_EQ(Broadcast(ShapeOf({2, 1, 4}), ShapeOf({3, 1}))->ToString(), "2x3x4");
    EXPECT_EQ(Broadcast(Shape(), ShapeOf({5}))->ToString(), "5");
    EXPECT_FALSE(Broadcast(ShapeOf({2}), ShapeOf({3})).ok());
    EXPECT_FALSE(Broadcast(ShapeOf({1 << 16, 1}), ShapeOf({1, 1 << 16})).ok());
    EXPECT_EQ(BroadcastStrides(ShapeOf({3, 1}), ShapeOf({2, 3, 4})),
              (std::vector<uint32_t>{0, 1, 0}));
}

TEST(InferType, Conv) {
    EXPECT_EQ(Infer(Conv({3, 3}), {{2, 3, 8, 9}, {4, 3, 3, 3}}), "f32[2x4x6x7]");
    EXPECT_EQ(Infer(Conv({3, 3}, 3), {{2, 3, 8, 9}, {6, 1, 3, 3}, {6}}), "f32[2x6x6x7]");
    op::Conv strided = Conv({3, 2});
    strided.window.strides = {2, 3};
    strided.window.pads = {1, 0, 2, 1};
    strided.window.dilations = {2, 1};
    EXPECT_EQ(Infer(strided, {{1, 3, 8, 9}, {4, 3, 3, 2}}), "f32[1x4x4x3]");

    EXPECT_THAT(Infer(Conv({3, 3}), {{3, 8, 9}, {4, 3, 3, 3}}), HasSubstr("rank 4"));
    EXPECT_THAT(Infer(Conv({3, 3}), {{2, 3, 8, 9}, {4, 2, 3, 3}}), HasSubstr("channels"));
    EXPECT_THAT(Infer(Conv({3, 3}, 2), {{2, 3, 8, 9}, {4, 1, 3, 3}}), HasSubstr("2 groups"));
    EXPECT_THAT(Infer(Conv({3, 3}, 0), {{2, 3, 8, 9}, {4, 3, 3, 3}}), HasSubstr("0 groups"));
    EXPECT_THAT(Infer(Conv({3, 2}), {{2, 3, 8, 9}, {4, 3, 3, 3}}), HasSubstr("kernel of 3x2"));
    EXPECT_THAT(Infer(Conv({3, 3}), {{2, 3, 8, 9}, {4, 3, 3, 3}, {5}}), HasSubstr("bias"));
    EXPECT_THAT(Infer(Conv({3, 3}), {{2, 3, 2, 9}, {4, 3, 3, 3}}), HasSubstr("does not fit"));
    EXPECT_THAT(Infer(Conv({3, 3}), {{2, 3, 8, 9}}), HasSubstr("1 operands are not in 2..3"));
}

TEST(InferType, Pool) {
    op::Pool pool;
    pool.window.kernel = {3, 3};
    pool.window.strides = {2, 2};
    EXPECT_EQ(Infer(pool, {{1, 2, 10, 11}}), "f32[1x2x4x5]");
    pool.ceil_mode = true;
    EXPECT_EQ(Infer(pool, {{1, 2, 10, 11}}), "f32[1x2x5x5]");
    // A last window that begins behind the plane and its left padding does not count.
    pool.window.kernel = {1, 1};
    pool.window.strides = {3, 3};
    EXPECT_EQ(Infer(pool, {{1, 2, 8, 9}}), "f32[1x2x3x3]");
    pool.window.pads = {1, 0, 0, 0};
    EXPECT_THAT(Infer(pool, {{1, 2, 8, 9}}), HasSubstr("without any element"));
}

TEST(InferType, MatMul) {
    EXPECT_EQ(Infer(op::MatMul{}, {{4, 5}, {5, 6}, {6}}), "f32[4x6]");
    EXPECT_EQ(Infer(op::MatMul{}, {{2, 1, 4, 5}, {3, 5, 6}}), "f32[2x3x4x6]");
    EXPECT_THAT(Infer(op::MatMul{}, {{4, 5}, {4, 6}}), HasSubstr("inner dimensions"));
    EXPECT_THAT(Infer(op::MatMul{}, {{5}, {5, 6}}), HasSubstr("rank 2"));
    EXPECT_THAT(Infer(op::MatMul{}, {{2, 4, 5}, {3, 5, 6}}), HasSubstr("broadcast"));
    EXPECT_THAT(Infer(op::MatMul{}, {{4, 5}, {5, 6}, {4}}), HasSubstr("bias"));
    EXPECT_THAT(Infer(op::MatMul{}, {{1 << 20, 1}, {1, 1 << 20}}), HasSubstr("exceeds"));
}

TEST(InferType, AxesAndShapes) {
    EXPECT_EQ(Infer(op::Softmax{1}, {{2, 3}}), "f32[2x3]");
    EXPECT_THAT(Infer(op::Softmax{2}, {{2, 3}}), HasSubstr("axis 2"));
    EXPECT_EQ(Infer(op::Reduce{op::ReduceKind::kSum, 1, 2}, {{2, 3, 4}}), "f32[2x1x1]");
    EXPECT_THAT(Infer(op::Reduce{op::ReduceKind::kSum, 2, 2}, {{2, 3, 4}}), HasSubstr("axes"));
    EXPECT_THAT(Infer(op::Reduce{op::ReduceKind::kSum, UINT32_MAX, 2}, {{2, 3}}),
                HasSubstr("axes"));
    EXPECT_EQ(Infer(op::Reshape{ShapeOf({6})}, {{2, 3}}), "f32[6]");
    EXPECT_THAT(Infer(op::Reshape{ShapeOf({7})}, {{2, 3}}), HasSubstr("6 elements against 7"));
    EXPECT_EQ(Infer(op::Transpose{{2, 0, 1}}, {{2, 3, 4}}), "f32[4x2x3]");
    EXPECT_THAT(Infer(op::Transpose{{0, 0}}, {{2, 3}}), HasSubstr("permutation"));
    EXPECT_THAT(Infer(op::Transpose{{0}}, {{2, 3}}), HasSubstr("permutation"));
    EXPECT_EQ(Infer(op::Concat{1}, {{2, 3}, {2, 4}, {2, 1}}), "f32[2x8]");
    EXPECT_THAT(Infer(op::Concat{0}, {{2, 3}, {2, 4}}), HasSubstr("joined"));
    EXPECT_EQ(Infer(op::Binary{}, {{2, 1}, {3}}), "f32[2x3]");
}

TEST(InferType, IntegersCanOnlyBeMoved) {
    const std::vector<TensorType> integers(2, {DataType::kI64, ShapeOf({4})});
    EXPECT_FALSE(InferType(op::Binary{}, integers).ok());
    EXPECT_TRUE(InferType(op::Reshape{ShapeOf({2, 2})}, std::span(integers).first(1)).ok());
}

}  // namespace
}  // namespace fornax::legacy_graph

// PlanMemory: sizes, regions, and blocks whose size a host step gives.
#include <gtest/gtest.h>

#include "compiler/graph/plan/packing.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::graph {
namespace {

PlanBlock Block(std::string name,
                Shape shape,
                BlockKind kind,
                uint32_t first,
                uint32_t last,
                ElementType element = ElementType::kF32) {
    return {std::move(name), {element, std::move(shape)}, kind, nullptr, nullptr, first, last};
}

TEST(SymbolSourceTest, ADimensionIsAMultipleOfItsSymbol) {
    const Symbol n("n"), m("m");
    EXPECT_EQ(MultipleOf(n, n), 1);
    EXPECT_EQ(MultipleOf(n, 64 * Expr(n)), 64);
    for (const Expr& other : {Expr(3), Expr(0), Expr(m), Expr(n) + 1, -2 * Expr(n),
                              Expr(n) * Expr(n), Expr(n) * Expr(m), FloorDiv(n, 2)}) {
        EXPECT_EQ(MultipleOf(n, other), std::nullopt) << other.ToString();
    }
    Plan plan;
    plan.inputs = {{"x", {ElementType::kF32, {4, 64 * Expr(n)}}, BlockId(0)}};
    EXPECT_EQ(ValueOf(plan, {n, 0, 1}, 192), 3);
    EXPECT_EQ(ValueOf(plan, {n, 0, 0}, 192), std::nullopt);
    EXPECT_EQ(ValueOf(plan, {n, 0, 2}, 192), std::nullopt);
    EXPECT_EQ(ValueOf(plan, {n, 1, 0}, 192), std::nullopt);
}

TEST(PlanMemoryTest, RegionsAreApart) {
    const Symbol n("n");
    Plan plan;
    plan.blocks = {
        Block("w", {3}, BlockKind::kConstant, 0, 9),
        Block("v", {100}, BlockKind::kConstant, 0, 9),
        Block("x", {n, 2}, BlockKind::kInput, 0, 1),
        Block("y", {n}, BlockKind::kOutput, 2, 9),
        Block("s", {Expr(n) + 1}, BlockKind::kState, 0, 9),
        Block("a", {n}, BlockKind::kTemporary, 0, 1),
        Block("b", {n}, BlockKind::kTemporary, 1, 2),
        Block("c", {n}, BlockKind::kTemporary, 2, 3),
    };
    const auto memory = PlanMemory(plan, {{n, 64}});
    ASSERT_TRUE(memory.ok()) << memory.error().message;
    EXPECT_EQ(memory->sizes, (std::vector<uint64_t>{12, 400, 512, 256, 260, 256, 256, 256}));
    EXPECT_EQ(memory->constant_bytes, 256u + 512u);
    EXPECT_EQ(memory->offsets[1], 256u);
    EXPECT_EQ(memory->port_bytes, 512u + 256u);
    EXPECT_EQ(memory->offsets[3], 512u);
    EXPECT_EQ(memory->offsets[4], 0u);
    EXPECT_EQ(memory->arena_bytes, 512u);
    EXPECT_EQ(memory->lower_bound_bytes, 512u);
    EXPECT_EQ(memory->offsets[5], memory->offsets[7]);
    EXPECT_NE(memory->offsets[5], memory->offsets[6]);
}

TEST(PlanMemoryTest, EmptyTensorsAndStringsTakeNothing) {
    const Symbol n("n");
    Plan plan;
    plan.blocks = {Block("a", {n, 5}, BlockKind::kTemporary, 0, 1),
                   Block("b", {7}, BlockKind::kTemporary, 0, 1, ElementType::kString),
                   Block("c", {}, BlockKind::kTemporary, 0, 1, ElementType::kU8)};
    const auto memory = PlanMemory(plan, {{n, 0}});
    ASSERT_TRUE(memory.ok()) << memory.error().message;
    EXPECT_EQ(memory->sizes, (std::vector<uint64_t>{0, 0, 1}));
    EXPECT_EQ(memory->arena_bytes, kTensorAlignment);
}

TEST(PlanMemoryTest, WhatAHostStepGivesIsPlacedLater) {
    const Symbol n("n"), m("m");
    Plan plan;
    plan.blocks = {Block("a", {n}, BlockKind::kTemporary, 0, 3),
                   Block("b", {m}, BlockKind::kTemporary, 1, 2),
                   Block("c", {Expr(m) + n}, BlockKind::kTemporary, 2, 3)};
    const auto before = PlanMemory(plan, {{n, 10}});
    ASSERT_TRUE(before.ok()) << before.error().message;
    EXPECT_EQ(before->sizes, (std::vector<uint64_t>{40, kUnknownSize, kUnknownSize}));
    EXPECT_EQ(before->arena_bytes, 256u);

    const auto after = PlanMemory(plan, {{n, 10}, {m, 100}}, &*before);
    ASSERT_TRUE(after.ok()) << after.error().message;
    EXPECT_EQ(after->sizes, (std::vector<uint64_t>{40, 400, 440}));
    EXPECT_EQ(after->arena_bytes, 1024u);  // without a, which keeps its place
    EXPECT_EQ(after->offsets[0], before->offsets[0]);
}

TEST(PlanMemoryTest, ImpossibleSizesAreErrors) {
    const Symbol n("n");
    Plan plan;
    plan.blocks = {Block("a", {Expr(n) - 5}, BlockKind::kTemporary, 0, 1)};
    EXPECT_TRUE(PlanMemory(plan, {{n, 5}}).ok());
    const auto negative = PlanMemory(plan, {{n, 3}});
    ASSERT_FALSE(negative.ok());
    EXPECT_EQ(negative.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(negative.error().message.find("of a is -2"), std::string::npos)
        << negative.error().message;

    plan.blocks = {Block("a", {FloorDiv(8, n)}, BlockKind::kTemporary, 0, 1)};
    EXPECT_TRUE(PlanMemory(plan, {{n, 2}}).ok());
    EXPECT_FALSE(PlanMemory(plan, {{n, 0}}).ok());

    plan.blocks = {Block("a", {n, n, n, n}, BlockKind::kTemporary, 0, 1)};
    EXPECT_TRUE(PlanMemory(plan, {{n, 1 << 10}}).ok());
    EXPECT_FALSE(PlanMemory(plan, {{n, 1 << 11}}).ok());
    EXPECT_FALSE(PlanMemory(plan, {{n, INT64_MAX}}).ok());
}

TEST(PlanMemoryTest, AllTensorsTogetherAreLimited) {
    Plan plan;
    plan.blocks.assign((1 << 13) + 1,
                       Block("a", {int64_t{1} << 40}, BlockKind::kInput, 0, 1, ElementType::kF64));
    const auto memory = PlanMemory(plan, {});
    ASSERT_FALSE(memory.ok());
    EXPECT_NE(memory.error().message.find("more than"), std::string::npos);
}

}  // namespace
}  // namespace fornax::graph

// A plan with one of each: for the tests of what checks, prints and stores plans.
#pragma once

#include "compiler/graph/plan/plan.h"

namespace fornax::graph {

// Blocks: 0 x, 1 w, 2 sum, 3 sorted, 4 y, 5 positions, 6 unique, 7 s.
// Steps: 0 adds w to x, 1 sorts on the host, 2 copies to y, 3 finds out m on the host.
inline Plan MakeTestPlan() {
    const Symbol n("n"), m("m");
    const auto f32 = [](std::initializer_list<Expr> dims) {
        return TensorType{ElementType::kF32, Shape(dims)};
    };
    const TensorType rows = f32({n, 8}), positions = {ElementType::kI64, Shape({n, 8})};
    const Bytes data = Tensor::FromFloats({8}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}).data;
    Plan plan;
    plan.name = "example";
    plan.graph_hash = "0123456789abcdef0123456789abcdef";
    plan.blocks = {
        {"x", rows, BlockKind::kInput, nullptr, nullptr, 0, 0},
        {"w", f32({8}), BlockKind::kConstant, data, nullptr, 0, 4},
        {"sum", rows, BlockKind::kTemporary, nullptr, nullptr, 0, 1},
        {"sorted", rows, BlockKind::kTemporary, nullptr, nullptr, 1, 3},
        {"y", f32({4, 2 * Expr(n)}), BlockKind::kOutput, nullptr, nullptr, 2, 4},
        {"positions", positions, BlockKind::kOutput, nullptr, nullptr, 1, 4},
        {"unique", f32({m}), BlockKind::kOutput, nullptr, nullptr, 3, 4},
        {"s", f32({8}), BlockKind::kState, data, nullptr, 0, 4},
    };
    plan.inputs = {{"x", rows, BlockId(0)}};
    plan.outputs = {{"y", f32({n, 8}), BlockId(4)},
                    {"positions", positions, BlockId(5)},
                    {"unique", f32({m}), BlockId(6)},
                    {"w", f32({2, 4}), BlockId(1)}};
    plan.kernels = {{loop::ParseKernel("kernel add(in a: f32[n,8], in b: f32[8], out c: f32[n,8])\n"
                                       "  sizes n in 1..100\n"
                                       "  parallel $i0 < n, $i1 < 8\n"
                                       "  %0 = load a[$i0,$i1]\n"
                                       "  %1 = load b[$i1]\n"
                                       "  %2 = add %0, %1\n"
                                       "  store c[$i0,$i1] = %2\n")
                         .value()},
                    {loop::ParseKernel("kernel copy(in a: f32[8*n], out c: f32[8*n])\n"
                                       "  sizes n in 1..100\n"
                                       "  parallel $i0 < 8*n\n"
                                       "  %0 = load a[$i0]\n"
                                       "  store c[$i0] = %0\n")
                         .value()}};
    plan.steps.emplace_back(DispatchStep{"sum",
                                         KernelId(0),
                                         {BlockId(0), BlockId(1), BlockId(2)},
                                         8 * Expr(n),
                                         32 * Expr(n) + 32,
                                         32 * Expr(n)});
    plan.steps.emplace_back(HostStep{"sort",
                                     op::Sort{0, true, n},
                                     {},
                                     {BlockId(2)},
                                     {rows},
                                     {BlockId(3), BlockId(5)},
                                     {rows, positions},
                                     "it is a test"});
    plan.steps.emplace_back(
        DispatchStep{"copy", KernelId(1), {BlockId(3), BlockId(4)}, 0, 32 * Expr(n), 32 * Expr(n)});
    plan.steps.emplace_back(HostStep{"unique",
                                     op::HostCall{"Unique", {{"axis", int64_t{0}}}, {f32({m})}},
                                     {},
                                     {BlockId(3)},
                                     {f32({8 * Expr(n)})},
                                     {BlockId(6)},
                                     {f32({m})},
                                     "its size is known afterwards"});
    plan.sources = {{n, 0, 0}};
    plan.ranges = {{n, {1, 100}}, {m, {0, 800}}};
    plan.guards = {{Relation::kLessEqual, n, 64}};
    plan.hints = {{n, 4}, {m, 8}};
    return plan;
}

inline DispatchStep& DispatchOf(Plan& plan, size_t step) {
    return std::get<DispatchStep>(plan.steps[step]);
}

inline HostStep& HostOf(Plan& plan, size_t step) {
    return std::get<HostStep>(plan.steps[step]);
}

}  // namespace fornax::graph

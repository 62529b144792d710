// Matrix products, einsum, and quantised products.
#pragma once

#include "compiler/graph/build/builder.h"

namespace fornax::graph {

// As numpy's matmul: vectors count as a row or column, leading dimensions are broadcast.
Val MatMul(Val a, Val b, std::optional<ElementType> accumulate = std::nullopt);
Val Gemm(Val a, Val b, Val c, double alpha, double beta, bool transpose_a, bool transpose_b);
// "ij,jk->ik", with ellipses, repeated labels, and without "->".
Val Einsum(const std::string& equation, const Vals& operands);
// The determinant of the matrices in the last two dimensions.
Val Determinant(Val x);

// --- Quantised ---

// The axis that scales run along (-1 for one scale), and in blocks of how many elements (0: one
// scale an index).
struct QuantAxis {
    int64_t axis = -1;
    int64_t block = 0;
};
// scale as it multiplies x: of x's shape or broadcastable to it.
Val SpreadScale(Val scale, Val x, QuantAxis quant);
// round(x / scale) + zero, saturated to `to`; computed in `compute`.
Val Quantise(Val x,
             Val scale,
             Val zero,
             QuantAxis quant,
             ElementType to,
             Overflow overflow,
             ElementType compute);
Val Dequantise(Val x, Val scale, Val zero, QuantAxis quant, ElementType to);
// i32 products of integers less their zero points, which may be nothing.
Val MatMulIntegers(Val a, Val a_zero, Val b, Val b_zero);
struct QuantisedTensor {
    Val value, scale, zero;
};
// To u8 over the whole tensor, as DynamicQuantizeLinear.
QuantisedTensor DynamicQuantise(Val x);

}  // namespace fornax::graph

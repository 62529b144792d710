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
// Bytes with another sign, as u8 or i8: the value with 128 more or less. Signed bytes are quantised
// as unsigned ones, which is what products multiply with signed weights.
Val FlipSign(Val bytes, ElementType to);
// i32 products of integers less their zero points, which may be nothing.
Val MatMulIntegers(Val a, Val a_zero, Val b, Val b_zero);
// Weights of n columns and k rows, with a scale for each `block` (a power of two from 16 on) of a
// column's elements, the last one filled up.
struct BlockWeights {
    int64_t k = 0, n = 0;
    int64_t bits = 4;  // of an element: 2, 4 or 8
    int64_t block = 32;
    int64_t high_bits = 0;  // above these, in a tensor of their own (MatMulByteBlocks() alone)
    int64_t blocks() const { return (k + block - 1) / block; }  // of a column
};
// x [..., k] times (element - zero) * scale: [..., n]. `weights`: u8 [n, blocks, bytes of a block],
// elements from the lowest bits on; `scales` [n, blocks]; `zeros` the same in floats, or as u8
// whose rows have elements of `bits` like the weights; without them the middle of the range.
// `groups`, if given, says for each of the k rows which block's scale and zero point are its own.
// Constants without groups are put into panels; anything else is decoded to f32 first.
Val MatMulBlocks(Val x, Val weights, Val scales, Val zeros, Val groups, const BlockWeights& form);
// a [..., k] times b [k, n] (or [n, k]) by MatMulBlocks(), if b is dequantised from constants that
// have a scale for each block along k, or is the transposition of such a matrix.
std::optional<Val> MultiplyBlocks(Val a, Val b, bool transpose_b);
// MatMulBlocks() with weights that lie in panels of 16 columns already, constant or not: `words`,
// u32 [panels, words of a column, 16], elements from the lowest bits on; `scales`, f32 [panels,
// blocks, 16]. An element is (bits - zero) * scale + least, where `zero` and `least` are f32 of the
// shape of the scales, or one number, or nothing. Columns from n on may hold anything.
inline constexpr int64_t kPanelColumns = 16;
Val MatMulPanels(Val x, Val words, Val scales, Val zero, Val least, const BlockWeights& form);
// The same with bytes, where x is rounded to 8 bits with a scale for each block of a row: `codes`,
// u8 [panels, blocks, words of a block, 16, 4]; of 4 bits the low halves of the bytes are the first
// half of the block's elements, of 2 bits the lowest quarters the first quarter. `high`, if there
// are high bits, is u8 [panels, blocks, 1, 16, 4], where those of each next four elements are
// above those of the last four; so a block has 32 of them. `scales` and `least` [panels, blocks,
// 16] are of any float, and `zero` is a number. k is a multiple of the block.
Val MatMulByteBlocks(Val x,
                     Val codes,
                     Val high,
                     Val scales,
                     double zero,
                     Val least,
                     const BlockWeights& form);
struct QuantisedTensor {
    Val value, scale, zero;
};
// To whole numbers of 0..255, for a range that is widened to have 0 in it. All are f32.
QuantisedTensor QuantiseRange(Val x, Val low, Val high);
// To u8 over the whole tensor, as DynamicQuantizeLinear.
QuantisedTensor DynamicQuantise(Val x);

}  // namespace fornax::graph

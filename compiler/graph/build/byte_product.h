// Products of quantised tensors in integers; what MatMul(), Gemm(), MatMulIntegers() and
// convolutions try first.
#pragma once

#include <optional>

#include "compiler/graph/build/builder.h"
#include "compiler/graph/build/convolve.h"

namespace fornax::graph {

// The product of a [..., k] and b [k, n] (or [n, k]), if a is dequantised from u8 with one scale
// and zero point, and b from constant bytes with a scale for each column at the most. The sums are
// exact and of i32; the result is of f32.
std::optional<Val> MultiplyBytes(Val a, Val b, bool transpose_b);

// The sums alone, i32, of the codes less their zero points, which may be nothing.
std::optional<Val> MultiplyCodes(Val a, Val a_zero, Val b, Val b_zero);

// The same for a convolution without bias (Convolve()) of one group, or with a
// channel in each group.
std::optional<Val> ConvolveBytes(Val x, Val w, const SpatialWindow& window, int64_t groups);
std::optional<Val> ConvolveCodes(Val x,
                                 Val x_zero,
                                 Val w,
                                 Val w_zero,
                                 const SpatialWindow& window,
                                 int64_t groups);

}  // namespace fornax::graph

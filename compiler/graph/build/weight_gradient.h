// Gradients of convolutions by their weights, as products whose operands lie in memory as matrices.
#pragma once

#include <optional>

#include "compiler/graph/build/builder.h"
#include "compiler/graph/build/convolve.h"

namespace fornax::graph {

// The gradient by weights [out channels, channels, height, width] of a convolution of one group, of
// f32: x is [batch, channels, height, width], `gradient` that of the result.
enum class WeightGradientForm : uint8_t {
    kConvolution,   // of x by the gradient: none of the forms below
    kPlanes,        // PlanarWeightGradient
    kWindowCopies,  // WindowCopyWeightGradient
    kWinograd,      // WinogradWeightGradient
};

// The form that takes the least time, one that computes this gradient.
WeightGradientForm FastestWeightGradient(Val gradient, Val x, const SpatialWindow& window);

// Nullopt for kConvolution.
std::optional<Val> WeightGradientOf(WeightGradientForm form,
                                    Val gradient,
                                    Val x,
                                    const SpatialWindow& window);

// A product for each row of taps. Nullopt for other ranks and types, where sizes are symbols, and
// where windows lie in the padding alone.
//
// An infinity in x makes NaNs of the elements that it reaches: some of its multiplications are by
// 0.
std::optional<Val> PlanarWeightGradient(Val gradient, Val x, const SpatialWindow& window);

// The same with a copy of what each window meets, [places, channels * height * width], which one
// product multiplies. No element is multiplied by a 0 that the convolution has not.
std::optional<Val> WindowCopyWeightGradient(Val gradient, Val x, const SpatialWindow& window);

// A matrix of so many rows, as a value that lies in memory in row-major order.
Val MatrixInMemory(Val matrix, int64_t rows);

}  // namespace fornax::graph

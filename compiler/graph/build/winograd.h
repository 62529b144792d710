// Convolutions of 3 x 3 with fewer multiplications: Winograd's F(2 x 2, 3 x 3).
#pragma once

#include <cstdint>

#include "compiler/graph/build/builder.h"
#include "compiler/graph/build/convolve.h"

namespace fornax::graph {

// Whether weights are transformed once, or in each run.
enum class WeightSource : uint8_t { kConstant, kRun };

// Whether the multiplications that are saved take longer than moving what lies in memory: the
// transformed image and the sums of its products, four times as large as the image and the result.
// So it depends on the channels, by which the multiplications grow faster than the bytes. A tile
// has 2 x 2 results. The gradient by the weights is as a convolution by weights of a run.
bool IsWinogradFaster(double tiles, double channels, double outputs, WeightSource source);

// A convolution of stride 1 of x [batch, channels, height, width] by constant weights
// [out channels, channels, 3, 3], both f32. Four results of a channel take 16 multiplications
// instead of 36. Its rounding errors are others than those of Convolve().
Val ConvolveWinograd(Val x, const Tensor& weights, const SpatialWindow& window);

// How the weights of a run lie: as those of a convolution, or as those of a transposed one,
// [channels, out channels, 3, 3] and mirrored.
enum class WeightOrder : uint8_t { kConvolution, kTransposed };

// The same by weights that each run has others of, which a kernel transforms.
Val ConvolveWinograd(Val x, Val weights, WeightOrder order, const SpatialWindow& window);

// The gradient by the weights [out channels, channels, 3, 3] of such a convolution; `gradient` is
// that of its result. All f32. It takes as many multiplications.
Val WinogradWeightGradient(Val gradient, Val x, const SpatialWindow& window);

}  // namespace fornax::graph

// Fourier transforms by the template fourier_rows, for lengths that it can make.
#pragma once

#include "compiler/graph/build/signal.h"

namespace fornax::graph {

// Whether transforms of so many rows of the length are faster so than as a product.
bool HasFastTransform(int64_t length, int64_t rows, bool real);
// As FourierTransform() of x along the axis before the last, which has the elements that the
// transform takes: `length`, or length / 2 + 1 for kInverseHalf. For f32.
Val FastTransform(Val x, int64_t length, Transform transform);

}  // namespace fornax::graph

// Window functions and Fourier transforms.
#pragma once

#include "compiler/graph/build/builder.h"

namespace fornax::graph {

// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n) for i in 0..size-1, where n is the size, or one less
// unless `periodic`.
Val CosineWindow(Builder& b,
                 const Expr& size,
                 bool periodic,
                 double a0,
                 double a1,
                 double a2,
                 ElementType element);

enum class Transform : uint8_t {
    kForward,
    kForwardHalf,  // only the first length / 2 + 1 frequencies
    kInverse,      // divided by the length
    kInverseHalf,  // from the first length / 2 + 1 frequencies to real numbers
};
// Along `axis` of x [..., 1 or 2], whose last dimension is a number's real and imaginary part; the
// axis is cut or extended with 0 to `length`. The result's last dimension is 2, of kInverseHalf 1.
// A composite "dft" with the length as a second operand, so that passes see it when it is known.
Val FourierTransform(Val x, int64_t axis, const Expr& length, Transform transform);
// The same as a product with cosines and sines.
Val FourierProduct(Val x, int64_t axis, const Expr& length, Transform transform);
// Transforms of frames of the window's size of signals [batch, samples, 1 or 2]: [batch, frames,
// frequencies, 2]. The window may be nothing.
Val ShortTimeTransform(Val signal, int64_t step, Val window, const Expr& length, bool half);
// [length / 2 + 1, bins].
Val MelWeights(Builder& b,
               int64_t bins,
               int64_t length,
               int64_t sample_rate,
               double lowest,
               double highest,
               ElementType element);

}  // namespace fornax::graph

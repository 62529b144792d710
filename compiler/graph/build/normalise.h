// Softmax and the normalisations, all composites.
#pragma once

#include "compiler/graph/build/builder.h"

namespace fornax::graph {

Val Softmax(Val x, int64_t axis);
Val LogSoftmax(Val x, int64_t axis);
// 1 at the first greatest element along the axis, else 0.
Val Hardmax(Val x, int64_t axis);

struct LayerNormResult {
    Val y, mean, inverse_deviation;
};
// Over the axes from `axis` on; computed in `compute`, in which mean and deviation are.
LayerNormResult LayerNorm(Val x,
                          Val scale,
                          Val bias,
                          int64_t axis,
                          double epsilon,
                          ElementType compute);
Val RmsNorm(Val x, Val scale, int64_t axis, double epsilon, ElementType compute);
// x is [batch, channels, ...]; scale and bias are [channels].
Val GroupNorm(Val x, Val scale, Val bias, int64_t groups, double epsilon, ElementType compute);
Val InstanceNorm(Val x, Val scale, Val bias, double epsilon);
// With the given statistics; expands at once.
Val BatchNorm(Val x, Val scale, Val bias, Val mean, Val variance, double epsilon);
// Mean and variance of each channel, over axis 0 and the axes from 2 on.
struct BatchStatistics {
    Val mean, variance;
};
BatchStatistics BatchMoments(Val x);
Val MeanVarianceNorm(Val x, std::span<const int64_t> axes, double epsilon);
Val LpNorm(Val x, int64_t axis, int64_t p);
// Across `size` neighbouring channels.
Val LocalResponseNorm(Val x, int64_t size, double alpha, double beta, double bias);

}  // namespace fornax::graph

// Rows of exponentials that are divided by their sum: what is known of their maxima and sums.
#pragma once

#include <vector>

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::loop {

// The reductions of m = max x, s = sum exp(x - m).
struct SoftmaxReductions {
    // Maxima that are only used where a NaN among the x makes a NaN through the sum, too, so they
    // may be those of the other x.
    std::vector<ScalarId> maxima;
    // Sums of f32 that are NaN, or at least 1 and at most the number of points, unless there is
    // no point.
    std::vector<ScalarId> sums;
};

SoftmaxReductions FindSoftmaxReductions(const Kernel& kernel, const Scope& scope);

}  // namespace fornax::graph::loop

// Products of few rows with a matrix whose columns lie along k in memory (emit_few_dots.cpp), as
// the rows of a matrix of weights do that nobody has packed.
#pragma once

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/product.h"

namespace fornax::graph::loop {

// Each row is an accumulator in registers. With more, tiles of matrices are as fast.
inline constexpr int64_t kMostDotRows = 16;
// Shorter sums are not worth adding up what the invocations have.
inline constexpr int64_t kLeastDotDepth = 256;
// Points of the innermost loop, which the invocations take.
inline constexpr int64_t kLeastDotRun = 16;

// Whether neighbours along the loop have the same place or follow each other in all loads that an
// operand needs, and some follow each other. The domain has the kernel's sizes and variables.
bool LiesAlong(const Kernel& kernel, ScalarId operand, const Loop& loop, const Domain& domain);

// Whether the product has at most so many rows, sums of f32 that are long enough to share, and
// operands whose neighbours in k lie side by side.
bool HasFewDots(const Kernel& kernel, const Scope& scope, const Product& product);

}  // namespace fornax::graph::loop

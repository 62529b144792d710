// Random tensors for tests.
#pragma once

#include <random>
#include <vector>

#include "compiler/graph/ir/types.h"

namespace fornax::graph::testing {

// A tensor of whole numbers in low..high.
Tensor MakeRandomTensor(std::mt19937_64& random,
                        ElementType type,
                        const std::vector<int64_t>& dims,
                        int64_t low,
                        int64_t high);

// Bounds of small numbers that every implementation computes exactly with.
int64_t LowOf(ElementType type);
int64_t HighOf(ElementType type);

}  // namespace fornax::graph::testing

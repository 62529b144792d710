// Reductions that are more than one primitive. Narrow floats are reduced in f32.
#pragma once

#include "compiler/graph/build/builder.h"

namespace fornax::graph {

Val ReduceMean(Val x, std::span<const int64_t> axes, bool keep);
Val ReduceL1(Val x, std::span<const int64_t> axes, bool keep);
Val ReduceL2(Val x, std::span<const int64_t> axes, bool keep);
Val ReduceSumSquare(Val x, std::span<const int64_t> axes, bool keep);
Val ReduceLogSum(Val x, std::span<const int64_t> axes, bool keep);
// Without overflow of the exponentials.
Val ReduceLogSumExp(Val x, std::span<const int64_t> axes, bool keep);

}  // namespace fornax::graph

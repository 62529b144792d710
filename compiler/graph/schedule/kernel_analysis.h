// What a kernel's scalars depend on, and how its loops are best distributed.
#pragma once

#include "compiler/graph/ir/sizes.h"
#include "compiler/graph/loop/kernel.h"

namespace fornax::graph {

// The most tensors in memory that one kernel reads; loop::kMaxBuffers has room for its results too.
inline constexpr size_t kMaxReadBuffers = 24;

// Whether the buffers and the loops of reductions are few enough for one kernel.
bool FitsOneKernel(const loop::Kernel& kernel);

// How often the kernel would evaluate its reductions' bodies, relative to computing each reduction
// once: 1 if nothing is computed twice. By the hints of `sizes`.
struct ReductionCost {
    double evaluations = 0;
    double least = 0;

    bool Recomputes() const { return evaluations > 1.01 * least; }
};

// Orders the parallel loops and sets the mapping, so that reductions are evaluated as few times as
// possible and loads lie side by side; gives what the reductions cost then.
ReductionCost ChooseMapping(loop::Kernel& kernel, const SizeFacts& sizes);

}  // namespace fornax::graph

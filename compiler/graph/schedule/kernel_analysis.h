// What a kernel's scalars depend on, and how its loops are best distributed.
#pragma once

#include <set>
#include <vector>

#include "compiler/graph/ir/sizes.h"
#include "compiler/graph/loop/kernel.h"

namespace fornax::graph {

// By scalar: the loop variables that its value depends on, without those of reductions in it.
std::vector<std::set<Symbol>> FreeVariables(const loop::Kernel& kernel);

// How often the kernel would evaluate its reductions' bodies, relative to computing each reduction
// once: 1 if nothing is computed twice. By the hints of `sizes`.
struct ReductionCost {
    double evaluations = 0;
    double least = 0;
};

// Orders the parallel loops and sets the mapping, so that reductions are evaluated as few times as
// possible and loads lie side by side; gives what the reductions cost then.
ReductionCost ChooseMapping(loop::Kernel& kernel, const SizeFacts& sizes);

}  // namespace fornax::graph

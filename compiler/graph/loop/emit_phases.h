// Kernels of phases: a workgroup for each group, a barrier behind each phase.
//
// The invocations share the innermost loop of a phase. Of outer loops each takes a few points at
// once, a block, so that what these have in common is loaded once; and reductions over the same
// loops are one loop with an accumulator for each of them at each point of the block.
#pragma once

#include "compiler/graph/loop/mapping_part.h"

namespace fornax::graph::loop {

// False if the kernel has no phases.
bool EmitPhases(KernelParts& parts);

}  // namespace fornax::graph::loop

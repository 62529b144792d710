// Control flow around barriers that each invocation carries with it: for kernels whose branches are
// too many to copy (barrier_branches.cpp).
#pragma once

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// Rewrites the kernel so that no construct that holds a barrier depends on an invocation. `mark` is
// the offset of 4 bytes of workgroup memory that the kernel does not use. The size of what comes
// out is linear in that of the kernel.
void CarryBarrierStates(ir::Kernel& kernel, uint32_t mark);

}  // namespace fornax::kernel

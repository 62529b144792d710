// Results that lie where an operand lay that nothing reads any more.
#pragma once

#include "compiler/graph/plan/plan.h"

namespace fornax::graph {

// A result takes the block of an operand that its step reads last, if the kernel's text proves that
// both may have the same bytes (loop/in_place.h). A step that would then only copy the block to
// itself goes: a scatter into such an operand is in place. Lifetimes have to be right before, and
// are to be set again, because steps, blocks and kernels may become fewer. Inputs, constants and
// states are left as they are.
void ShareBlocks(Plan& plan);

}  // namespace fornax::graph

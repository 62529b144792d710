// Kernels whose invocations have a point each.
//
// Neighbouring invocations take neighbours along the innermost loops. Where what lies side by side
// does so along another loop, and in rows that vectors do not fill, points are laid out otherwise.
#pragma once

#include "compiler/graph/loop/mapping_part.h"

namespace fornax::graph::loop {

// For any kernel without phases. A few points of each invocation may be faster: then they are runs
// or go across the memory.
void EmitFlat(KernelParts& parts);

}  // namespace fornax::graph::loop

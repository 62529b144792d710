// Kernels whose loads or stores lie side by side along different loops, such as transpositions.
//
// Invocations side by side take neighbours along one of the loops, and each computes a run of
// points along the other one. So both what lies side by side across invocations and what does so in
// the run is accessed in whole cache lines.
#pragma once

#include "compiler/graph/loop/mapping_part.h"

namespace fornax::graph::loop {

// False if the kernel is none for this: loads and stores lie side by side along the innermost loop
// or along one other. `needed` are the scalars of its stores.
bool EmitRuns(KernelParts& parts,
              const Nest& nest,
              std::span<const Expr> uses,
              const std::vector<bool>& needed);

}  // namespace fornax::graph::loop

// What is done to the kernel of a recurrence once it is complete: see recurrence.h.
#pragma once

#include "compiler/graph/ir/sizes.h"
#include "compiler/graph/loop/kernel.h"

namespace fornax::graph {

// The first dimension of the local tensors `copied` is two copies: one for this iteration and one
// for the next. This removes the second copy where no phase would read what it stores itself.
void DropCopies(loop::Kernel& kernel, const std::vector<loop::BufferId>& copied);

// Makes parallel loops of those dimensions along which nothing is shared, a batch for instance, so
// that they become workgroups; up to `tile` points of the last of them stay together, because what
// they load in common, the matrices, is loaded once then.
void FormGroups(loop::Kernel& kernel, const SizeFacts& sizes, int64_t tile);

}  // namespace fornax::graph

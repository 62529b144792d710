// Which results of a kernel may take the bytes of an operand.
#pragma once

#include "compiler/graph/loop/kernel.h"

namespace fornax::graph::loop {

// Whether the buffers may be bound to the same bytes and the kernel still computes the same, on
// every device: `read` is read only at the element that the same point of the parallel loops writes
// to `written`, by the invocation that writes it, and each point writes another element. False
// where that does not follow from the kernel's text in little time. Of a kernel that Verify()
// accepts.
//
// What this relies on: all mappings of EmitSpirv() evaluate a store's scalars, as far as they are
// not part of a reduction, in the one invocation that stores at the point, before it does.
bool MayShareBytes(const Kernel& kernel, BufferId read, BufferId written);

// The same, and the kernel stores nothing but what it reads there: then it need not run.
bool CopiesInPlace(const Kernel& kernel, BufferId read, BufferId written);

}  // namespace fornax::graph::loop

// Reductions that go across the memory: over the first or a middle axis, of whole rows.
//
// Neighbouring invocations take neighbouring columns. If each went down its own column, a row would
// give a workgroup few cache lines, each row in another page: the processor's own prefetching sees
// nothing, and only as many lines are under way as the first cache has misses. So a workgroup has a
// wide tile of columns, goes through it row by row, and keeps what has been combined so far of each
// column in workgroup memory. An invocation has the same columns everywhere and waits for no other.
#pragma once

#include "compiler/graph/loop/mapping_part.h"

namespace fornax::graph::loop {

// False if rows do not lie across the memory, or there is too little to gain.
bool EmitAcross(KernelParts& parts, const Nest& nest, std::span<const Expr> uses);

}  // namespace fornax::graph::loop

// The row mapping: a workgroup for each row, or for two short ones.
//
// A short row is a chain of steps that wait for each other: its reductions end with additions
// across the lanes, which the next loop over the row needs. With two rows at once each step of one
// has work of the other beside it, and what they have in common is loaded once.
#pragma once

#include "compiler/graph/loop/mapping_part.h"

namespace fornax::graph::loop {

// False if the kernel is not mapped so, or its points meet elsewhere than in reductions.
bool EmitRows(KernelParts& parts);

}  // namespace fornax::graph::loop

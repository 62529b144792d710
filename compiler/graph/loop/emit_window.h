// Reductions over sliding windows, in tiles.
//
// A workgroup computes a tile of points along the window's axes. First its invocations compute the
// elements that the tile's windows cover into workgroup memory, each once; then each invocation
// computes a column of points, reading what neighbouring windows share once. The scalars behind the
// reductions and the stores come last, for the points that exist.
#pragma once

#include "compiler/graph/loop/mapping_part.h"

namespace fornax::graph::loop {

// False if the kernel has no sliding window, or no tile of it fits.
bool EmitWindow(KernelParts& parts);

}  // namespace fornax::graph::loop

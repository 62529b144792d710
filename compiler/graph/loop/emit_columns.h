// Reductions over sliding windows of tensors whose channels come last.
//
// Neighbouring invocations take neighbouring channels. Each computes a column of points along one
// of the window's axes: it loads an element once for all points whose windows cover it, and what
// depends on the window's place alone, such as a weight, once for all points. Where the windows of
// a column are inside of the image nothing is checked.
#pragma once

#include "compiler/graph/loop/mapping_part.h"
#include "compiler/graph/loop/window.h"

namespace fornax::graph::loop {

// A window with lanes. False if these are too few, or the code would be too long.
bool EmitColumns(KernelParts& parts, const Window& window);

}  // namespace fornax::graph::loop

// The operators that run on the host: what they compute depends on the data in ways that a device
// has no kernels for (results of unknown size, strings).
#pragma once

#include "compiler/graph/interpret/interpreter.h"

namespace fornax::graph {

// All of them, by the names that op::HostCall has. Each checks its operands.
const HostFunctions& StandardHostFunctions();

}  // namespace fornax::graph

// Values that only say where memory accesses go.
#pragma once

#include <vector>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// By value: integers that buffers' offsets are made of and nothing else. Most accesses look at what
// the lanes share (lane_patterns.h, lane_speculation.h), so a lane's own is best computed where one
// has to look at it.
std::vector<bool> FindAddressValues(const ir::Kernel& kernel);

}  // namespace fornax::kernel

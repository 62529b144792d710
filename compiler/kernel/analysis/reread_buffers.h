// Which loads read what the workgroup has read or written before: a workgroup that comes back to
// its row has it in the cache, so there is time to prefetch the next workgroup's.
#pragma once

#include <vector>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// By a load's first result: it stands in a loop of a kernel with barriers, and another loop before
// has read the buffer or written to it.
std::vector<bool> FindRereads(const ir::Kernel& kernel);

}  // namespace fornax::kernel

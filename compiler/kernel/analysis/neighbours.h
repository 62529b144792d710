// Accesses whose lanes may be neighbours although nothing at compile time says so.
#pragma once

#include <cstdint>

#include "compiler/kernel/analysis/shapes.h"
#include "compiler/kernel/ir/ir.h"

namespace fornax::kernel {

// Whether it is worth a test at run time that each lane's offset lies `bytes` behind that of the
// lane before: the offset is computed from the invocation's number by arithmetic that shapes do not
// follow, such as divisions by sizes that are known at run time only, and not by a multiple of
// something longer. What depends on loaded values is taken for irregular.
bool MayBeNeighbours(const ir::Kernel& kernel,
                     const ShapeAnalysis& shapes,
                     ir::ValueId offset,
                     uint64_t bytes);

}  // namespace fornax::kernel

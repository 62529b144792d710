// What an offset that shapes do not follow probably looks like.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/kernel/analysis/shapes.h"
#include "compiler/kernel/ir/ir.h"

namespace fornax::kernel {

// How far the lanes' offsets lie behind the lowest one, by lane, if all goes well: uniform values
// are multiples of what they are shifted and divided by, a division by a value that is known at run
// time only gives all lanes one quotient, what is multiplied by such a value is multiplied by 1.
// Nothing if there is no guess, because the offset depends on what lanes have loaded, or all lanes
// have the same. A guess is to be tested at run time.
std::optional<std::vector<int64_t>> GuessLaneOffsets(const ir::Kernel& kernel,
                                                     const ShapeAnalysis& shapes,
                                                     ir::ValueId offset);

}  // namespace fornax::kernel

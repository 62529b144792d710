// What the interpreter computes where lanes of a subgroup run an operation together.
#pragma once

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// By lane: its values, by value id; null for a lane that is not there.
using Lanes = std::span<uint64_t* const>;

// Runs `inst`, which has the property kSubgroup. A shuffle from a lane that is not there gives 0.
void RunSubgroupOp(const ir::Kernel& kernel, const ir::Instruction& inst, Lanes lanes);

}  // namespace fornax::kernel

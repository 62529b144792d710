// What is known of an integer's size, from what it is made of.
#pragma once

#include <vector>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// What values do not exceed at one place of the text, by value, because of the conditions that hold
// there; values beyond the end may be anything.
using KnownBounds = std::vector<uint64_t>;

// No value of the integer, read as unsigned, exceeds this.
uint64_t UpperBound(const ir::Kernel& kernel,
                    ir::ValueId value,
                    const KnownBounds& known = {},
                    uint32_t depth = 0);

}  // namespace fornax::kernel

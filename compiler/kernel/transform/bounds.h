// What is known of an integer's size, from what it is made of.
#pragma once

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// No value of the integer, read as unsigned, exceeds this.
uint64_t UpperBound(const ir::Kernel& kernel, ir::ValueId value, uint32_t depth = 0);

}  // namespace fornax::kernel

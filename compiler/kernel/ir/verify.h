// The rules that every kernel keeps.
#pragma once

#include "base/result.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel::ir {

// Checks types, operand counts, dominance (scoping), construct structure and terminators. Every
// pass runs it in debug builds; the reader's output and parsed text always pass through it.
Status Verify(const Kernel& kernel);

}  // namespace fornax::kernel::ir

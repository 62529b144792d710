// The types that each operation takes and gives, apart from control flow: one half of the verifier.
#pragma once

#include <string>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel::ir {

// Says what is wrong with the instruction's operand and result types or its imm, as the rest of a
// sentence that begins with the instruction; "" if nothing is. Counts other than kVariadic must
// have been checked, and all ids be in range.
std::string SignatureFault(const Kernel& kernel, const Instruction& inst);

}  // namespace fornax::kernel::ir

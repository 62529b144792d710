// Quotients and remainders as shaders write them.
#pragma once

#include <optional>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// A quotient or remainder, as it stands in the text: the operation alone, or behind a branch that
// spares it where the dividend is smaller or the divisor a power of two.
struct Division {
    ir::ValueId result;
    ir::ValueId dividend;
    ir::ValueId divisor;
    ir::Op op = ir::Op::kUDiv;
};

// What the instruction or construct computes, if that is all.
std::optional<Division> FindDivision(const ir::Kernel& kernel, ir::InstId id);

}  // namespace fornax::kernel

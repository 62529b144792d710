// Which operations divide: on any processor they take several times as long as an addition.
#pragma once

#include "compiler/kernel/ir/ops.h"

namespace fornax::kernel::ir {

inline bool IsDivision(Op op) {
    switch (op) {
        case Op::kUDiv:
        case Op::kSDiv:
        case Op::kURem:
        case Op::kSRem:
        case Op::kSMod:
        case Op::kFDiv:
        case Op::kFRem:
        case Op::kFMod:
            return true;
        default:
            return false;
    }
}

}  // namespace fornax::kernel::ir

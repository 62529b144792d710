// What a vector unit takes an operation for.
#pragma once

#include <cstdint>

#include "compiler/kernel/ir/divisions.h"
#include "compiler/kernel/ir/ops.h"

namespace fornax::kernel {

enum class OperationKind : uint8_t {
    kNone,  // no operation of a vector unit: inputs, buffers, registers, changes of the type alone
    kSimple,  // additions, multiplications, comparisons, conversions, exchanges between lanes
    kMultiplyAdd,
    kDivision,  // divisions and remainders
    kSpecial,   // exponentials, logarithms, roots, trigonometry
};

inline OperationKind OperationKindOf(ir::Op op) {
    using ir::Op;
    if (op >= Op::kSqrt && op <= Op::kATanh) {
        return OperationKind::kSpecial;
    }
    if (ir::IsDivision(op)) {
        return OperationKind::kDivision;
    }
    switch (op) {
        case Op::kConst:
        case Op::kUndef:
        case Op::kBuiltin:
        case Op::kBitcast:
        case Op::kBuffer:
        case Op::kBufferSize:
        case Op::kBufferAddress:
        case Op::kBufferFrom:
        case Op::kLoadDescriptor:
        case Op::kLoadPush:
        // Private arrays are registers.
        case Op::kLoadLocal:
        case Op::kStoreLocal:
        case Op::kReadClock:
        case Op::kMemoryBarrier:
        case Op::kSubgroupBarrier:
        case Op::kCount:
        case Op::kMatrixMulAdd:
        case Op::kMatrixTranspose:
        case Op::kMatrixLoad:
            return OperationKind::kNone;
        case Op::kFma:
            return OperationKind::kMultiplyAdd;
        default:
            return OperationKind::kSimple;
    }
}

}  // namespace fornax::kernel

// Matrices that a subgroup holds together: what matrix_muladd and its like work on.
#pragma once

#include "compiler/kernel/ir/kernel.h"
#include "hal/matrix_unit.h"

namespace fornax::kernel::ir {

// Rows, columns, and products that an element of the accumulator gains.
inline constexpr uint32_t kMatrixSize = hal::kMatrixUnitSize;
inline constexpr uint32_t kMatrixElements = kMatrixSize * kMatrixSize;

// Instruction::imm of matrix_muladd.
enum MatrixFlags : uint64_t {
    kMatrixSignedA = 1,     // i8: the elements of A are signed
    kMatrixSignedB = 2,     // likewise
    kMatrixSaturating = 4,  // i32: the sum is exact and then clamped, to the unsigned range or,
    kMatrixSignedC = 8,     // with this one, to the signed one
    kMatrixBFloat16 = 16,   // i16: they are bfloat16
    kMatrixKeepsDenormals = 32,  // otherwise they may be taken for 0
    kMatrixHalfSums = 64,        // the accumulator is of f16 that became f32 for this
};
inline constexpr uint64_t kAllMatrixFlags = 127;

// How the unit is configured for a matrix_muladd.
inline hal::MatrixFormat MatrixFormatOf(const Kernel& kernel, const Instruction& inst) {
    if (kernel.type(inst.operands[0]) == Type::kI8) {
        return hal::MatrixFormat::kInt8;
    }
    if (kernel.type(inst.operands[0]) == Type::kF32) {
        return hal::MatrixFormat::kF32;
    }
    return inst.imm & kMatrixBFloat16 ? hal::MatrixFormat::kBF16 : hal::MatrixFormat::kF16;
}

// What a matrix_load saw may be another thing behind this.
inline bool MayWriteBuffers(const Instruction& inst) {
    const bool elsewhere =
        inst.op == Op::kStoreLocal || inst.op == Op::kStoreShared || inst.op == Op::kAtomicShared;
    return HasProperty(inst.op, kRegions | kTerminator) ||
           (HasProperty(inst.op, kWritesMemory) && !elsewhere);
}

// Elements that a lane has.
inline uint32_t MatrixLaneElements(const Kernel& kernel) {
    return kMatrixElements / kernel.subgroup_size;
}

}  // namespace fornax::kernel::ir

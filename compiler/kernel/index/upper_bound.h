// How large an integer can be, read as unsigned: one rule for each operation, for all that reason
// about ranges.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// The greatest value of an input of the kernel.
uint64_t UpperBoundOf(const ir::Kernel& kernel, ir::BuiltinId builtin);

// The input's value in the invocation with this index in its workgroup, if that decides it.
std::optional<uint32_t> ValueInInvocation(const ir::Kernel& kernel,
                                          ir::BuiltinId builtin,
                                          uint32_t index);

// The greatest value of the result of an instruction on integers or booleans; `bound` gives an
// operand's upper bound by its number.
template <typename BoundOf>
uint64_t UpperBoundOfResult(const ir::Kernel& kernel,
                            const ir::Instruction& inst,
                            ir::ValueId value,
                            BoundOf&& bound) {
    using ir::Op;
    const uint32_t width = ir::BitWidth(kernel.type(value));
    const uint64_t all = ~uint64_t{0} >> (64 - width);
    uint64_t constant = 0;
    const bool by_constant =
        inst.operands.size() == 2 && kernel.IsConst(inst.operands[1], &constant);
    const uint64_t sign = uint64_t{1} << (width - 1);
    const bool positive = by_constant && constant != 0 && constant < sign;
    uint64_t result = all;
    switch (inst.op) {
        case Op::kConst:
            return inst.imm;
        case Op::kBuiltin:
            return UpperBoundOf(kernel, static_cast<ir::BuiltinId>(inst.imm));
        case Op::kAnd:
        case Op::kUMin:
            return std::min<uint64_t>(bound(0), bound(1));
        case Op::kOr:
        case Op::kXor:
            result = bound(0) | bound(1);
            return result == 0 ? 0 : ~uint64_t{0} >> std::countl_zero(result);
        case Op::kUMax:
            return std::max<uint64_t>(bound(0), bound(1));
        case Op::kSelect:
            return std::max<uint64_t>(bound(1), bound(2));
        // Where no operand is negative, both readings of it are one.
        case Op::kSMin:
        case Op::kSMax: {
            const uint64_t a = bound(0);
            const uint64_t b = bound(1);
            if (a >= sign || b >= sign) {
                return all;
            }
            return inst.op == Op::kSMin ? std::min(a, b) : std::max(a, b);
        }
        case Op::kLShr:
            return by_constant && constant < width ? bound(0) >> constant : bound(0);
        case Op::kAShr:
            result = bound(0);
            if (result >= sign) {
                return all;
            }
            return by_constant && constant < width ? result >> constant : result;
        case Op::kShl:
            if (!by_constant || constant >= width) {
                return all;
            }
            result = bound(0);
            return result <= all >> constant ? result << constant : all;
        case Op::kUDiv:
            return by_constant && constant != 0 ? bound(0) / constant : all;
        case Op::kURem:
            return by_constant && constant != 0 ? std::min<uint64_t>(bound(0), constant - 1)
                                                : bound(0);
        case Op::kSDiv:
            result = positive ? bound(0) : all;
            return result < sign ? result / constant : all;
        case Op::kSRem:
        case Op::kSMod:
            result = positive ? bound(0) : all;
            return result < sign ? std::min(result, constant - 1) : all;
        case Op::kIAdd:
            return __builtin_add_overflow(bound(0), bound(1), &result) || result > all ? all
                                                                                       : result;
        case Op::kIMul:
            return __builtin_mul_overflow(bound(0), bound(1), &result) || result > all ? all
                                                                                       : result;
        case Op::kZExt:
            return bound(0);
        case Op::kSExt:
            result = bound(0);
            return result >> (ir::BitWidth(kernel.type(inst.operands[0])) - 1) == 0 ? result : all;
        case Op::kTrunc:
        case Op::kBitcast:
            return std::min<uint64_t>(bound(0), all);
        default:
            return all;
    }
}

}  // namespace fornax::kernel

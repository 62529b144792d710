#include "compiler/kernel/ir/group.h"

#include <bit>
#include <cmath>

#include "base/half.h"

namespace fornax::kernel::ir {

namespace {

uint64_t FloatBits(Type type, double value) {
    switch (type) {
        case Type::kF16:
            return DoubleToHalf(value);
        case Type::kF32:
            return std::bit_cast<uint32_t>(static_cast<float>(value));
        default:
            return std::bit_cast<uint64_t>(value);
    }
}

}  // namespace

Op CombineOp(GroupOp op) {
    switch (op) {
        case GroupOp::kIAdd:
            return Op::kIAdd;
        case GroupOp::kIMul:
            return Op::kIMul;
        case GroupOp::kUMin:
            return Op::kUMin;
        case GroupOp::kUMax:
            return Op::kUMax;
        case GroupOp::kSMin:
            return Op::kSMin;
        case GroupOp::kSMax:
            return Op::kSMax;
        case GroupOp::kAnd:
            return Op::kAnd;
        case GroupOp::kOr:
            return Op::kOr;
        case GroupOp::kXor:
            return Op::kXor;
        case GroupOp::kFAdd:
            return Op::kFAdd;
        case GroupOp::kFMul:
            return Op::kFMul;
        case GroupOp::kFMin:
            return Op::kFMin;
        case GroupOp::kFMax:
            return Op::kFMax;
    }
    return Op::kIAdd;
}

// The identities that SPIR-V gives for Group and Non-Uniform instructions.
uint64_t GroupIdentity(GroupOp op, Type type) {
    const uint32_t bits = BitWidth(type);
    const uint64_t ones = ~uint64_t{0} >> (64 - bits);
    const uint64_t sign = uint64_t{1} << (bits - 1);
    switch (op) {
        case GroupOp::kIAdd:
        case GroupOp::kOr:
        case GroupOp::kXor:
        case GroupOp::kUMax:
        case GroupOp::kFAdd:
            return 0;
        case GroupOp::kIMul:
            return 1;
        case GroupOp::kUMin:
        case GroupOp::kAnd:
            return ones;
        case GroupOp::kSMin:
            return sign - 1;
        case GroupOp::kSMax:
            return sign;
        case GroupOp::kFMul:
            return FloatBits(type, 1.0);
        case GroupOp::kFMin:
            return FloatBits(type, HUGE_VAL);
        case GroupOp::kFMax:
            return FloatBits(type, -HUGE_VAL);
    }
    return 0;
}

}  // namespace fornax::kernel::ir

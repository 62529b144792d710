// Algebraic identities of conversions, bit fields, divisions by powers of two and floats.
#include <bit>
#include <cmath>
#include <utility>

#include "compiler/kernel/ir/evaluate.h"
#include "compiler/kernel/transform/algebra.h"

namespace fornax::kernel {

using namespace ir;

namespace {

// Indices of one object that are at most this far apart do not wrap against one another.
constexpr uint64_t kNearIndices = uint64_t{1} << 30;

}  // namespace

ValueId Algebra::FoldConversion() {
    const Instruction* inner = kernel_.Definition(A());
    if (e_.op == Op::kBitcast && kernel_.type(A()) == e_.type) {
        return A();
    }
    if (e_.op == Op::kFConvert && kernel_.type(A()) == e_.type) {
        return kStays;  // quiets a NaN
    }
    uint64_t c = 0;
    if (ValueId x; e_.op == Op::kSExt && (e_.flags & kNoLaneWrap) && Width() == 32 &&
                   AsWithConst(A(), Op::kIAdd, &x, &c) && c < kNearIndices) {
        return Build(Op::kIAdd, {BuildWide(Op::kSExt, x), Const(c)});
    }
    if (e_.op == Op::kSExt && IsNonNegative(A())) {
        return BuildWide(Op::kZExt, A());
    }
    if (!inner || inner->operands.empty()) {
        return kStays;
    }
    ValueId x = inner->operands[0];
    Type type = kernel_.type(x);
    switch (e_.op) {
        case Op::kBitcast:
            return inner->op == Op::kBitcast ? Build(Op::kBitcast, {x}) : kStays;
        case Op::kTrunc:
            if (inner->op == Op::kTrunc) {
                return Build(Op::kTrunc, {x});
            }
            if (inner->op != Op::kZExt && inner->op != Op::kSExt) {
                return kStays;
            }
            if (type == e_.type) {
                return x;
            }
            return BitWidth(type) > BitWidth(e_.type) ? Build(Op::kTrunc, {x})
                                                      : Build(inner->op, {x});
        case Op::kZExt:
            return inner->op == Op::kZExt ? Build(Op::kZExt, {x}) : kStays;
        case Op::kSExt:
            return inner->op == Op::kSExt || inner->op == Op::kZExt ? Build(inner->op, {x})
                                                                    : kStays;
        default:
            return kStays;
    }
}

// Fields at known places are shifts and masks, which analyses understand.
ValueId Algebra::FoldBitField() {
    uint64_t offset = 0, count = 0;
    if (!IsConst(e_.operands[1], &offset) || !IsConst(e_.operands[2], &count) || count == 0 ||
        offset + count > Width()) {
        return kStays;
    }
    ValueId shifted = Build(Op::kLShr, {A(), Const(offset)});
    return Build(Op::kAnd, {shifted, Const(~uint64_t{0} >> (64 - count))});
}

// x / 2^k is x * 2^-k, both being the same number rounded once; where 2^-k is normal.
ValueId Algebra::FoldDivisionByPower() {
    uint64_t bits = 0;
    if (e_.type == Type::kF16 || !IsConst(B(), &bits)) {
        return kStays;
    }
    uint32_t digits = e_.type == Type::kF32 ? 23 : 52;
    uint64_t exponent_mask = e_.type == Type::kF32 ? 0xff : 0x7ff;
    uint64_t exponent = bits >> digits & exponent_mask;
    uint64_t bias = exponent_mask / 2;
    bool power_of_two = (bits & ((uint64_t{1} << digits) - 1)) == 0;
    if (!power_of_two || exponent == 0 || exponent >= 2 * bias) {
        return kStays;
    }
    uint64_t sign = bits >> (digits + std::bit_width(exponent_mask));
    uint64_t inverse = (sign << std::bit_width(exponent_mask) | (2 * bias - exponent)) << digits;
    return builder_.Build({Op::kFMul, e_.type, {A(), Const(inverse)}, 0, e_.flags});
}

ValueId Algebra::FoldFloat() {
    auto is = [&](ValueId id, double value) {
        uint64_t bits = 0;
        if (!IsConst(id, &bits)) {
            return false;
        }
        switch (e_.type) {
            case Type::kF16:
                return bits == (value == 1 ? 0x3c00u : std::signbit(value) ? 0x8000u : 0u);
            case Type::kF32:
                return bits == std::bit_cast<uint32_t>(static_cast<float>(value));
            default:
                return bits == std::bit_cast<uint64_t>(value);
        }
    };
    switch (e_.op) {
        case Op::kFAdd:  // x + -0 is x; x + 0 is not, for x = -0
            return is(B(), -0.0) ? A() : kStays;
        case Op::kFSub:
            return is(B(), 0.0) ? A() : kStays;
        case Op::kFMul:
            return is(B(), 1.0) ? A() : kStays;
        case Op::kFDiv:
            return is(B(), 1.0) ? A() : FoldDivisionByPower();
        case Op::kFNeg:
        case Op::kFAbs: {
            const Instruction* inner = kernel_.Definition(A());
            if (!inner || (inner->op != Op::kFNeg && inner->op != Op::kFAbs)) {
                return kStays;
            }
            if (e_.op == Op::kFAbs) {
                return Build(Op::kFAbs, {inner->operands[0]});
            }
            return inner->op == Op::kFNeg ? inner->operands[0] : kStays;
        }
        default:
            return kStays;
    }
}

}  // namespace fornax::kernel

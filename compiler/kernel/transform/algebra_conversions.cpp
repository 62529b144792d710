// Algebraic identities of conversions, bit fields, divisions by powers of two and floats.
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/kernel/ir/evaluate.h"
#include "compiler/kernel/transform/algebra.h"

namespace fornax::kernel {

using namespace ir;

namespace {

// Indices of one object that are at most this far apart do not wrap against one another.
constexpr uint64_t kNearIndices = uint64_t{1} << 30;

// The least number whose root is at least `bound`, or the greatest whose root is at most that.
float SquareAround(float bound, bool is_least) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    float square = bound * bound;
    while (std::sqrt(square) >= bound) {
        square = std::nextafter(square, 0.0f);
    }
    // Now the greatest whose root is less.
    const auto goes_on = [&](float next) {
        return is_least ? std::sqrt(square) < bound : std::sqrt(next) <= bound;
    };
    for (float next = std::nextafter(square, kInfinity); goes_on(next);
         next = std::nextafter(square, kInfinity)) {
        square = next;
    }
    return square;
}

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

// x^2, x^1.5 and the like are products, and a square root: a few operations in place of dozens, and
// closer than the exp2(y * log2(x)) by which SPIR-V bounds the error of Pow. For x < 0 its result
// is undefined.
ValueId Algebra::FoldPow() {
    uint64_t bits = 0;
    if (e_.type != Type::kF32 || !IsConst(B(), &bits)) {
        return kStays;
    }
    constexpr float kMost = 4;
    const float exponent = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const float whole = std::floor(exponent);
    if (!(exponent >= 1 && exponent <= kMost) || (exponent != whole && exponent != whole + 0.5f)) {
        return kStays;
    }
    auto product = [&](ValueId a, ValueId b) {
        return builder_.Build({Op::kFMul, e_.type, {a, b}, 0, e_.flags});
    };
    const ValueId square = whole >= 2 ? product(A(), A()) : A();
    ValueId power = whole == 4   ? product(square, square)
                    : whole == 3 ? product(square, A())
                                 : square;
    return exponent == whole ? power : product(power, Build(Op::kSqrt, {A()}));
}

// Whether a float is a sum of squares or the like: it is not below -0, or no number.
bool Algebra::IsSumOfSquares(ValueId id, int depth) const {
    const Instruction* inst = depth == 0 ? nullptr : kernel_.Definition(id);
    uint64_t bits = 0;
    if (inst == nullptr || IsConst(id, &bits)) {
        return inst != nullptr && static_cast<int32_t>(bits) >= 0;
    }
    const auto& operands = inst->operands;
    switch (inst->op) {
        case Op::kFAbs:
            return true;
        case Op::kFMul:
            return operands[0] == operands[1];
        case Op::kFAdd:
            return IsSumOfSquares(operands[0], depth - 1) && IsSumOfSquares(operands[1], depth - 1);
        case Op::kFma:
            return operands[0] == operands[1] && IsSumOfSquares(operands[2], depth - 1);
        default:
            return false;
    }
}

// sqrt(x) < c is x < d for the least d whose root is not less: roots are rounded correctly, so they
// never fall. A root takes longer than the sum of squares that a shader's length() is of.
ValueId Algebra::FoldRootOrder() {
    constexpr float kLeast = 1e-15f;  // squares of it and of its inverse are normal
    constexpr int kMostTerms = 4;
    const bool is_upper = As(A(), Op::kSqrt) != nullptr;
    const Instruction* root = As(is_upper ? A() : B(), Op::kSqrt);
    uint64_t bits = 0;
    if (root == nullptr || !IsConst(is_upper ? B() : A(), &bits) ||
        kernel_.type(A()) != Type::kF32 || !IsSumOfSquares(root->operands[0], kMostTerms)) {
        return kStays;
    }
    const float bound = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!(bound >= kLeast && bound <= 1 / kLeast)) {
        return kStays;
    }
    const bool or_equal = e_.op == Op::kFOLe || e_.op == Op::kFULe;
    const float square = SquareAround(bound, is_upper != or_equal);
    const ValueId limit = Const(Type::kF32, std::bit_cast<uint32_t>(square));
    const ValueId x = root->operands[0];
    return is_upper ? Build(e_.op, {x, limit}) : Build(e_.op, {limit, x});
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

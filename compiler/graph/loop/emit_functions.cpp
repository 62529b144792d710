// Scalar functions of integers, bools and floats (emit_functions.h).
#include "compiler/graph/loop/emit_functions.h"

#include <bit>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <spirv/unified1/GLSL.std.450.h>

namespace fornax::graph::loop {

using spv::Op;

namespace {

bool IsLong(ElementType type) {
    return BitsOf(type) == 64;
}

}  // namespace

Id ScalarFunctions::Apply(ScalarFunction function,
                          ElementType type,
                          std::span<const Id> arguments) {
    if (function == ScalarFunction::kSelect) {
        return b_.Select(arguments[0], arguments[1], arguments[2]);
    }
    return IsFloat(type) ? FloatFunction(function, type, arguments)
                         : IntegerFunction(function, type, arguments);
}

// --- Integers ------------------------------------------------------------------------------------

Id ScalarFunctions::IntegerFunction(ScalarFunction function,
                                    ElementType type,
                                    std::span<const Id> arguments) {
    const Id a = arguments[0], b = arguments.size() > 1 ? arguments[1] : a;
    const bool is_bool = type == ElementType::kBool, is_signed = IsSigned(type);
    const Id id_type = b_.TypeOf(a);
    const auto constant = [&](int64_t value) {
        return b_.Constant(id_type, static_cast<uint64_t>(value));
    };
    const Op less = is_signed ? Op::OpSLessThan : Op::OpULessThan;
    switch (function) {
        case ScalarFunction::kNeg:
            return Wrap(type, Unary(Op::OpSNegate, a));
        case ScalarFunction::kAbs: {
            const Id negative = is_signed ? Test(Op::OpSLessThan, a, constant(0)) : b_.False();
            return Wrap(type, b_.Select(negative, Unary(Op::OpSNegate, a), a));
        }
        case ScalarFunction::kSign: {
            const Id positive = b_.Select(Test(Op::OpINotEqual, a, constant(0)), constant(1), a);
            return is_signed
                       ? b_.Select(Test(Op::OpSLessThan, a, constant(0)), constant(-1), positive)
                       : positive;
        }
        case ScalarFunction::kNot:
            return is_bool ? b_.Not(a) : Wrap(type, Unary(Op::OpNot, a));
        case ScalarFunction::kPopCount: {
            if (IsLong(type)) {
                const Id high = Binary(Op::OpShiftRightLogical, a, constant(32));
                const auto count = [&](Id half) {
                    return Unary(Op::OpBitCount, b_.Op(Op::OpUConvert, b_.U32(), {half}));
                };
                return b_.Op(Op::OpUConvert, id_type, {b_.Add(count(a), count(high))});
            }
            const uint32_t bits = BitsOf(type);
            const Id low = bits == 32 ? a : Binary(Op::OpBitwiseAnd, a, U((1U << bits) - 1));
            return Wrap(type, Unary(Op::OpBitCount, low));  // 2 of i2 is -2
        }
        case ScalarFunction::kAdd:
            return Wrap(type, b_.Add(a, b));
        case ScalarFunction::kSub:
            return Wrap(type, b_.Sub(a, b));
        case ScalarFunction::kMul:
            return Wrap(type, b_.Mul(a, b));
        case ScalarFunction::kDiv:
        case ScalarFunction::kFloorDiv:
        case ScalarFunction::kRem:
        case ScalarFunction::kMod:
            return Wrap(type, IntegerQuotient(function, type, a, b));
        case ScalarFunction::kPow:
            return Wrap(type, IntegerPower(type, a, b));
        case ScalarFunction::kMin:
            return b_.Select(Test(less, b, a), b, a);
        case ScalarFunction::kMax:
            return b_.Select(Test(less, a, b), b, a);
        case ScalarFunction::kAnd:
            return is_bool ? b_.And(a, b) : Binary(Op::OpBitwiseAnd, a, b);
        case ScalarFunction::kOr:
            return is_bool ? b_.Or(a, b) : Binary(Op::OpBitwiseOr, a, b);
        case ScalarFunction::kXor:
            return Binary(is_bool ? Op::OpLogicalNotEqual : Op::OpBitwiseXor, a, b);
        case ScalarFunction::kShiftLeft:
        case ScalarFunction::kShiftRight:
            return Shift(function, type, a, b);
        case ScalarFunction::kEqual:
            return Test(is_bool ? Op::OpLogicalEqual : Op::OpIEqual, a, b);
        case ScalarFunction::kLess:
            return Test(less, a, b);
        case ScalarFunction::kLessEqual:
            return Test(is_signed ? Op::OpSLessThanEqual : Op::OpULessThanEqual, a, b);
        default:
            return Reject(fmt::format("{} is not defined for {}", Name(function), Name(type)));
    }
}

// By 0 gives 0; the least number by -1 wraps. Neither division is done.
Id ScalarFunctions::IntegerQuotient(ScalarFunction function, ElementType type, Id a, Id b) {
    const bool is_signed = IsSigned(type);
    const bool quotient = function == ScalarFunction::kDiv || function == ScalarFunction::kFloorDiv;
    const Id id_type = b_.TypeOf(a), zero = b_.Constant(id_type, 0), one = b_.Constant(id_type, 1);
    const Id minus_one = b_.Constant(id_type, ~uint64_t{0});
    const bool is_constant = b_.ConstantBits(b).has_value() && b != zero;
    const Id by_zero = is_constant ? b_.False() : Test(Op::OpIEqual, b, zero);
    if (!is_signed) {
        const Id divisor = b_.Select(by_zero, one, b);
        return b_.Select(by_zero, zero, quotient ? b_.UDiv(a, divisor) : b_.UMod(a, divisor));
    }
    const Id by_minus_one =
        is_constant && b != minus_one ? b_.False() : Test(Op::OpIEqual, b, minus_one);
    const Id divisor = b_.Select(b_.Or(by_zero, by_minus_one), one, b);
    const Id whole = Binary(Op::OpSDiv, a, divisor);
    const Id rest = b_.Sub(a, b_.Mul(whole, divisor));
    const Id other_sign = Test(Op::OpSLessThan, Binary(Op::OpBitwiseXor, rest, divisor), zero);
    const Id adjust = b_.And(other_sign, Test(Op::OpINotEqual, rest, zero));
    const auto special = [&](Id value, Id negated) {
        return b_.Select(by_zero, zero, b_.Select(by_minus_one, negated, value));
    };
    switch (function) {
        case ScalarFunction::kDiv:
            return special(whole, Unary(Op::OpSNegate, a));
        case ScalarFunction::kFloorDiv:
            return special(b_.Select(adjust, b_.Sub(whole, one), whole), Unary(Op::OpSNegate, a));
        case ScalarFunction::kRem:
            return special(rest, zero);
        default:
            return special(b_.Select(adjust, b_.Add(rest, b), rest), zero);
    }
}

Id ScalarFunctions::IntegerPower(ElementType type, Id a, Id b) {
    const Id id_type = b_.TypeOf(a), zero = b_.Constant(id_type, 0), one = b_.Constant(id_type, 1);
    const Id minus_one = b_.Constant(id_type, ~uint64_t{0});
    const auto times = [&](Id power, Id square, Id exponent) {
        const Id odd = Binary(Op::OpBitwiseAnd, exponent, one);
        return b_.Select(Test(Op::OpINotEqual, odd, zero), b_.Mul(power, square), power);
    };
    // Repeated squaring, for every bit of the exponent.
    const Ids initial = {one, a, b};
    const Ids result =
        b_.For(U(0), U(BitsOf(type)), U(1), initial, [&](Id, std::span<const Id> carried) -> Ids {
            const Id square = carried[1], exponent = carried[2];
            return {times(carried[0], square, exponent), b_.Mul(square, square),
                    Binary(Op::OpShiftRightLogical, exponent, one)};
        });
    if (!IsSigned(type)) {
        return result[0];
    }
    // With a negative exponent only 1 and -1 have powers that are not 0.
    const Id odd = Test(Op::OpINotEqual, Binary(Op::OpBitwiseAnd, b, one), zero);
    const Id sign = b_.Select(odd, minus_one, one);
    const Id fraction = b_.Select(Test(Op::OpIEqual, a, one), one,
                                  b_.Select(Test(Op::OpIEqual, a, minus_one), sign, zero));
    return b_.Select(Test(Op::OpSLessThan, b, zero), fraction, result[0]);
}

Id ScalarFunctions::Shift(ScalarFunction function, ElementType type, Id a, Id b) {
    const Id id_type = b_.TypeOf(a), zero = b_.Constant(id_type, 0);
    const uint32_t bits = BitsOf(type);
    const Id fits = b_.ULess(b, b_.Constant(id_type, bits));
    const Id last = b_.Constant(id_type, IsLong(type) ? 63 : 31);
    const Id distance = b_.Select(fits, b, last);
    if (function == ScalarFunction::kShiftLeft) {
        return b_.Select(fits, Wrap(type, Binary(Op::OpShiftLeftLogical, a, distance)), zero);
    }
    if (IsSigned(type)) {
        return Binary(Op::OpShiftRightArithmetic, a, distance);
    }
    return b_.Select(fits, Binary(Op::OpShiftRightLogical, a, distance), zero);
}

// --- Floats --------------------------------------------------------------------------------------

// A selection on "a < b" is a, if that holds, else b, so b where one is NaN: of NaN in a more is
// needed, but not if a is a constant.
Id ScalarFunctions::Least(Id a, Id b) {
    if (b_.ConstantBits(b)) {
        std::swap(a, b);
    }
    const Id less = b_.Select(Test(Op::OpFOrdLessThan, a, b), a, b);
    return b_.ConstantBits(a) ? less : b_.Select(IsNan(a), a, less);
}

Id ScalarFunctions::Greatest(Id a, Id b) {
    if (b_.ConstantBits(b)) {
        std::swap(a, b);
    }
    const Id greater = b_.Select(Test(Op::OpFOrdGreaterThan, a, b), a, b);
    return b_.ConstantBits(a) ? greater : b_.Select(IsNan(a), a, greater);
}

// C's fmod of f32 in f64, where every quotient below 2^29 leaves an exact remainder.
Id ScalarFunctions::Remainder(Id a, Id b) {
    const Id f64 = TypeOf(Held::kF64);
    const auto real = [&](double value) {
        return b_.Constant(f64, std::bit_cast<uint64_t>(value));
    };
    const auto absolute = [&](Id x) {
        return b_.Ext(f64, GLSLstd450FAbs, {b_.Op(Op::OpFConvert, f64, {x})});
    };
    const Id dividend = absolute(a), divisor = absolute(b);
    const auto reduce = [&](Id x, Id by) {
        const Id whole = b_.Ext(f64, GLSLstd450Trunc, {Binary(Op::OpFDiv, x, by)});
        const Id rest = Binary(Op::OpFSub, x, Binary(Op::OpFMul, whole, by));
        // The quotient may have been rounded to the next whole number, up or down.
        const Id low =
            b_.Select(Test(Op::OpFOrdLessThan, rest, real(0)), Binary(Op::OpFAdd, rest, by), rest);
        return b_.Select(Test(Op::OpFOrdGreaterThanEqual, low, by), Binary(Op::OpFSub, low, by),
                         low);
    };
    const Id large =
        Test(Op::OpFOrdGreaterThanEqual, Binary(Op::OpFDiv, dividend, divisor), real(0x1p28));
    const Id infinity = real(std::numeric_limits<double>::infinity());
    const Id finite = Test(Op::OpFOrdLessThan, dividend, infinity);
    const Id start = b_.If(
        b_.And(b_.And(large, finite), Test(Op::OpFOrdGreaterThan, divisor, real(0))),
        [&] {
            // Multiples of the divisor by powers of 2^24, the greatest first.
            constexpr uint32_t kSteps = 12;
            Id multiple = Binary(Op::OpFMul, divisor, real(0x1p264));
            Ids carried = {dividend, multiple};
            return Ids{
                b_.For(U(0), U(kSteps), U(1), carried, [&](Id, std::span<const Id> values) -> Ids {
                    return {reduce(values[0], values[1]),
                            Binary(Op::OpFMul, values[1], real(0x1p-24))};
                })[0]};
        },
        [&] { return Ids{dividend}; })[0];
    const Id rest =
        b_.Select(Test(Op::OpFOrdLessThan, start, divisor), start, reduce(start, divisor));
    return CopySign(b_.Op(Op::OpFConvert, b_.F32(), {rest}), a);
}

Id ScalarFunctions::FloatFunction(ScalarFunction function,
                                  ElementType type,
                                  std::span<const Id> arguments) {
    const Id a = arguments[0], b = arguments.size() > 1 ? arguments[1] : a;
    const Id id_type = b_.TypeOf(a);
    const bool is_long = type == ElementType::kF64;
    const auto real = [&](double value) {
        return is_long ? b_.DoubleConstant(value) : F(static_cast<float>(value));
    };
    const auto ext = [&](uint32_t number) { return b_.Ext(id_type, number, {a}); };
    const Id zero = real(0);
    switch (function) {
        case ScalarFunction::kNeg:
            return Unary(Op::OpFNegate, a);
        case ScalarFunction::kAbs:
            return ext(GLSLstd450FAbs);
        case ScalarFunction::kSign:
            return b_.Select(Test(Op::OpFOrdGreaterThan, a, zero), real(1),
                             b_.Select(Test(Op::OpFOrdLessThan, a, zero), real(-1), a));
        case ScalarFunction::kFloor:
            return ext(GLSLstd450Floor);
        case ScalarFunction::kCeil:
            return ext(GLSLstd450Ceil);
        case ScalarFunction::kRound:
            return ext(GLSLstd450RoundEven);
        case ScalarFunction::kTrunc:
            return ext(GLSLstd450Trunc);
        case ScalarFunction::kSqrt:
            return ext(GLSLstd450Sqrt);
        case ScalarFunction::kRsqrt:
            return Binary(Op::OpFDiv, real(1), ext(GLSLstd450Sqrt));
        case ScalarFunction::kReciprocal:
            return Binary(Op::OpFDiv, real(1), a);
        case ScalarFunction::kIsNan:
            return IsNan(a);
        case ScalarFunction::kIsInf:
            return b_.Op(Op::OpIsInf, b_.Bool(), {a});
        case ScalarFunction::kAdd:
            return Binary(Op::OpFAdd, a, b);
        case ScalarFunction::kSub:
            return Binary(Op::OpFSub, a, b);
        case ScalarFunction::kMul:
            return Binary(Op::OpFMul, a, b);
        case ScalarFunction::kDiv:
            return Binary(Op::OpFDiv, a, b);
        case ScalarFunction::kFloorDiv: {
            if (!is_long && target_.float64) {  // where no quotient of f32 rounds to a whole number
                const Id f64 = TypeOf(Held::kF64);
                const Id quotient = Binary(Op::OpFDiv, b_.Op(Op::OpFConvert, f64, {a}),
                                           b_.Op(Op::OpFConvert, f64, {b}));
                return b_.Op(Op::OpFConvert, id_type, {b_.Ext(f64, GLSLstd450Floor, {quotient})});
            }
            // The quotient may have been rounded to a whole number, which the remainder tells.
            const Id whole = b_.Ext(id_type, GLSLstd450Floor, {Binary(Op::OpFDiv, a, b)});
            const Id rest = b_.Ext(id_type, GLSLstd450Fma, {Unary(Op::OpFNegate, whole), b, a});
            const Id over = b_.Or(
                b_.And(Test(Op::OpFOrdLessThan, rest, zero), Test(Op::OpFOrdGreaterThan, b, zero)),
                b_.And(Test(Op::OpFOrdGreaterThan, rest, zero), Test(Op::OpFOrdLessThan, b, zero)));
            return b_.Select(over, Binary(Op::OpFSub, whole, real(1)), whole);
        }
        case ScalarFunction::kRem:
        case ScalarFunction::kMod: {
            if (is_long) {
                return Reject(fmt::format("{} of f64 is computed on the host", Name(function)));
            }
            const Id rest = Remainder(a, b);
            if (function == ScalarFunction::kRem) {
                return rest;
            }
            const Id differs = Test(Op::OpLogicalNotEqual, Test(Op::OpFOrdLessThan, rest, zero),
                                    Test(Op::OpFOrdLessThan, b, zero));
            const Id nonzero = b_.Select(differs, Binary(Op::OpFAdd, rest, b), rest);
            return b_.Select(Test(Op::OpFOrdEqual, rest, zero), CopySign(zero, b), nonzero);
        }
        case ScalarFunction::kMin:
            return Least(a, b);
        case ScalarFunction::kMax:
            return Greatest(a, b);
        case ScalarFunction::kEqual:
            return Test(Op::OpFOrdEqual, a, b);
        case ScalarFunction::kLess:
            return Test(Op::OpFOrdLessThan, a, b);
        case ScalarFunction::kLessEqual:
            return Test(Op::OpFOrdLessThanEqual, a, b);
        default:
            break;
    }
    if (is_long) {
        return Reject(fmt::format("{} of f64 is computed on the host", Name(function)));
    }
    return math_.Apply(function, a, b);
}

Id ScalarFunctions::CombineValues(Combine combine, ElementType type, Id a, Id b) {
    // A minimum tests the first of its two operands for NaN: where that is the new
    // value, a loop's iterations do not wait for the test of the one before.
    const Ids both = {b, a};
    switch (combine) {
        case Combine::kSum:
            return IsFloat(type) ? Binary(Op::OpFAdd, a, b) : b_.Add(a, b);  // wrapped at the end
        case Combine::kProduct:
            return IsFloat(type) ? Binary(Op::OpFMul, a, b) : b_.Mul(a, b);
        case Combine::kMin:
            return Apply(ScalarFunction::kMin, type, both);
        case Combine::kMax:
            return Apply(ScalarFunction::kMax, type, both);
        case Combine::kAnd:
            return Apply(ScalarFunction::kAnd, type, both);
        case Combine::kOr:
            return Apply(ScalarFunction::kOr, type, both);
        case Combine::kXor:
            return Apply(ScalarFunction::kXor, type, both);
        case Combine::kReplace:
            break;
    }
    return b;
}

}  // namespace fornax::graph::loop

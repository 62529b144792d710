// Conversions between element types, and elements in memory (emit_convert.h).
#include "compiler/graph/loop/emit_convert.h"

#include <bit>
#include <cmath>
#include <limits>

#include <spirv/unified1/GLSL.std.450.h>

namespace fornax::graph::loop {

using spv::Op;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr uint32_t kF32Mantissa = 23, kF32Bias = 127;

// What the codes beside the numbers are.
enum class Specials : uint8_t { kIeee, kNan, kNanZero, kNone };

struct NarrowFormat {
    uint32_t exponent_bits, mantissa_bits, bias;
    Specials specials;

    uint32_t sign_bit() const { return 1U << (exponent_bits + mantissa_bits); }
    uint32_t top() const { return ((1U << exponent_bits) - 1) << mantissa_bits; }
    uint32_t greatest() const {
        switch (specials) {
            case Specials::kIeee:
                return top() - 1;
            case Specials::kNan:
                return sign_bit() - 2;
            default:
                return sign_bit() - 1;
        }
    }
    uint32_t nan() const {
        switch (specials) {
            case Specials::kIeee:
                return top() | 1U << (mantissa_bits - 1);
            case Specials::kNan:
                return sign_bit() - 1;
            default:
                return sign_bit();
        }
    }
};

NarrowFormat FormatOf(ElementType type) {
    switch (type) {
        case ElementType::kF4E2M1:
            return {2, 1, 1, Specials::kNone};
        case ElementType::kF8E4M3FN:
            return {4, 3, 7, Specials::kNan};
        case ElementType::kF8E4M3FNUZ:
            return {4, 3, 8, Specials::kNanZero};
        case ElementType::kF8E5M2:
            return {5, 2, 15, Specials::kIeee};
        case ElementType::kF8E5M2FNUZ:
            return {5, 2, 16, Specials::kNanZero};
        case ElementType::kF16:
            return {5, 10, 15, Specials::kIeee};
        default:
            return {8, 7, 127, Specials::kIeee};  // bf16
    }
}

}  // namespace

Id Conversions::Convert(Id value,
                        ElementType from,
                        ElementType to,
                        Overflow overflow,
                        Rounding rounding) {
    if (from == to && !IsFloat(to)) {
        return value;
    }
    if (to == ElementType::kBool) {
        if (IsFloat(from)) {
            const Id zero = b_.Constant(b_.TypeOf(value), 0);
            return Test(Op::OpFUnordNotEqual, value, zero);
        }
        return Test(Op::OpINotEqual, value, b_.Constant(b_.TypeOf(value), 0));
    }
    if (from == ElementType::kBool) {
        const bool is_float = IsFloat(to);
        const Id zero = ConstantOf(to, is_float ? Scalar::Float(0) : Scalar::Integer(0));
        // i2 has 1, and e8m0 has no 0: its rounding decides.
        if (to == ElementType::kF8E8M0) {
            return RoundF32(b_.Select(value, F(1), F(0)), to, overflow, rounding);
        }
        return b_.Select(value, ConstantOf(to, is_float ? Scalar::Float(1) : Scalar::Integer(1)),
                         zero);
    }
    if (IsFloat(from) && IsFloat(to)) {
        return ConvertFloat(value, from, to, overflow, rounding);
    }
    if (IsFloat(from)) {
        return FloatToInteger(value, from, to);
    }
    if (IsFloat(to)) {
        return IntegerToFloat(value, from, to);
    }
    const Held source = HeldAs(from), target = HeldAs(to);
    if (source == target) {
        return Wrap(to, value);
    }
    if (target == Held::kI32) {
        const std::optional<Id> narrow = NarrowOf(value);
        return Wrap(to, narrow ? *narrow : b_.Op(Op::OpUConvert, b_.U32(), {value}));
    }
    if (from == ElementType::kU32) {
        return b_.Op(Op::OpUConvert, TypeOf(Held::kI64), {value});
    }
    return Widen(IsSigned(from) ? Op::OpSConvert : Op::OpUConvert, value);
}

Id Conversions::ConvertFloat(Id value,
                             ElementType from,
                             ElementType to,
                             Overflow overflow,
                             Rounding rounding) {
    if (to == ElementType::kF64) {
        const Id wide = from == to ? value : b_.Op(Op::OpFConvert, TypeFor(to), {value});
        return overflow == Overflow::kSaturate ? Saturated(wide) : wide;
    }
    if (from != ElementType::kF64) {
        return RoundF32(value, to, overflow, rounding);
    }
    if (to == ElementType::kF32) {
        return F64ToF32(value, overflow, rounding, false);
    }
    const Id odd = F64ToF32(value, Overflow::kSpecial, Rounding::kNearestEven, true);
    return RoundF32(odd, to, overflow, rounding);
}

// Infinities as the greatest numbers.
Id Conversions::Saturated(Id value) {
    const Id greatest = b_.BitsOf(b_.TypeOf(value)) == 64
                            ? b_.DoubleConstant(std::numeric_limits<double>::max())
                            : F(std::numeric_limits<float>::max());
    return b_.Select(b_.Op(Op::OpIsInf, b_.Bool(), {value}), CopySign(greatest, value), value);
}

Id Conversions::FloatToInteger(Id value, ElementType from, ElementType to) {
    const auto real = [&](double number) {
        return from == ElementType::kF64 ? b_.DoubleConstant(number)
                                         : F(static_cast<float>(number));
    };
    const uint32_t bits = BitsOf(to);
    const bool is_signed = IsSigned(to);
    const Id type = TypeFor(to);
    // The first whole number above the type's, and the least one.
    const double bound = std::ldexp(1.0, static_cast<int>(is_signed ? bits - 1 : bits));
    const uint64_t greatest = ~uint64_t{0} >> ((is_signed ? 65 : 64) - bits);
    const Id too_great = Test(Op::OpFOrdGreaterThanEqual, value, real(bound));
    const Id too_small = is_signed ? Test(Op::OpFOrdLessThanEqual, value, real(-bound))
                                   : Test(Op::OpFUnordLessThan, value, real(0));  // NaN too
    const Id nan = is_signed ? IsNan(value) : b_.False();
    const Id outside = b_.Or(b_.Or(too_great, too_small), nan);
    const Id safe = b_.Select(outside, real(0), value);
    const Id whole = b_.Op(is_signed ? Op::OpConvertFToS : Op::OpConvertFToU, type, {safe});
    const Id least = b_.Constant(type, is_signed ? ~greatest : 0);
    // What is NaN or below an unsigned type's range is 0 already.
    const Id low = is_signed ? b_.Select(too_small, least, whole) : whole;
    return b_.Select(too_great, b_.Constant(type, greatest), low);
}

// Greater numbers than f32 has exactly are rounded to odd on the way to a narrower type, so that
// the second rounding decides.
Id Conversions::IntegerToFloat(Id value, ElementType from, ElementType to) {
    const bool is_signed = IsSigned(from);
    const Op op = is_signed ? Op::OpConvertSToF : Op::OpConvertUToF;
    if (to == ElementType::kF64) {
        return b_.Op(op, TypeFor(to), {value});
    }
    if (const std::optional<Id> narrow = NarrowOf(value); narrow && is_signed) {
        value = *narrow;
    }
    const Id id_type = b_.TypeOf(value);
    const uint32_t width = b_.BitsOf(id_type);
    if (to == ElementType::kF32 || BitsOf(from) <= 16) {
        const Id exact = b_.Op(op, b_.F32(), {value});
        return to == ElementType::kF32
                   ? exact
                   : RoundF32(exact, to, Overflow::kSpecial, Rounding::kNearestEven);
    }
    const auto constant = [&](uint64_t bits) { return b_.Constant(id_type, bits); };
    const Id negative = is_signed ? Test(Op::OpSLessThan, value, constant(0)) : b_.False();
    Id magnitude = b_.Select(negative, Unary(Op::OpSNegate, value), value);
    Id scale = F(1);
    // Leaves at least 12 bits, more than a narrow type needs to round.
    const auto drop = [&](uint32_t above, uint32_t lost) {
        const Id low = Binary(Op::OpBitwiseAnd, magnitude, constant((uint64_t{1} << lost) - 1));
        const Id sticky =
            b_.Select(Test(Op::OpINotEqual, low, constant(0)), constant(1), constant(0));
        const Id kept = Binary(Op::OpBitwiseOr,
                               Binary(Op::OpShiftRightLogical, magnitude, constant(lost)), sticky);
        const Id small = b_.ULess(magnitude, constant(uint64_t{1} << above));
        magnitude = b_.Select(small, magnitude, kept);
        const float factor = std::ldexp(1.0F, static_cast<int>(lost));
        scale = b_.Select(small, scale, Binary(Op::OpFMul, scale, F(factor)));
    };
    if (width == 64) {
        drop(48, 24);
        drop(36, 12);
    }
    drop(24, 12);
    const Id number = Binary(Op::OpFMul, b_.Op(Op::OpConvertUToF, b_.F32(), {magnitude}), scale);
    return RoundF32(b_.Select(negative, Unary(Op::OpFNegate, number), number), to,
                    Overflow::kSpecial, Rounding::kNearestEven);
}

Id Conversions::F64ToF32(Id value, Overflow overflow, Rounding rounding, bool to_odd) {
    const Id nearest = b_.Op(Op::OpFConvert, b_.F32(), {value});
    const bool plain = overflow == Overflow::kSpecial && rounding == Rounding::kNearestEven;
    if (plain && !to_odd) {
        return nearest;
    }
    const Id back = b_.Op(Op::OpFConvert, TypeOf(Held::kF64), {nearest});
    const Id bits = BitsAs(b_.U32(), nearest);
    const Id negative = Test(Op::OpSLessThan, bits, U(0));
    const Id above = Test(Op::OpFOrdGreaterThan, back, value);
    const Id below = Test(Op::OpFOrdLessThan, back, value);
    const Id away = b_.Select(negative, below, above);
    const Id towards = b_.Select(negative, above, below);
    if (to_odd) {
        // Towards zero, with the last bit set if anything was lost; infinities of finite numbers
        // become the greatest number, which is odd.
        const Id truncated = b_.Select(away, b_.Sub(bits, U(1)), bits);
        const Id inexact = b_.Or(away, towards);
        return BitsAs(b_.F32(),
                      b_.Select(inexact, Binary(Op::OpBitwiseOr, truncated, U(1)), truncated));
    }
    Id result = bits;
    if (rounding == Rounding::kUp) {
        const Id next = b_.Select(negative, b_.Sub(bits, U(1)), b_.Add(bits, U(1)));
        const Id zero = Test(Op::OpIEqual, bits, U(0x80000000U));
        result = b_.Select(below, b_.Select(zero, U(1), next), bits);
    } else if (rounding == Rounding::kDown) {
        const Id next = b_.Select(negative, b_.Add(bits, U(1)), b_.Sub(bits, U(1)));
        const Id zero = Test(Op::OpIEqual, bits, U(0));
        result = b_.Select(above, b_.Select(zero, U(0x80000001U), next), bits);
    }
    const Id number = BitsAs(b_.F32(), result);
    return overflow == Overflow::kSaturate ? Saturated(number) : number;
}

// An f32 that the type has.
Id Conversions::RoundF32(Id value, ElementType to, Overflow overflow, Rounding rounding) {
    if (to == ElementType::kF32) {
        return overflow == Overflow::kSaturate ? Saturated(value) : value;
    }
    const bool plain = overflow == Overflow::kSpecial && rounding == Rounding::kNearestEven;
    if (to == ElementType::kF16 && plain && target_.storage_16bit) {
        // What may be stored may be converted.
        b_.Capability(spv::Capability::StorageBuffer16BitAccess);
        const Id half = b_.Op(Op::OpFConvert, b_.Float(16), {value});
        return b_.Op(Op::OpFConvert, b_.F32(), {half});
    }
    return Decode(Encode(value, to, overflow, rounding), to);
}

Id Conversions::Encode(Id value, ElementType to, Overflow overflow, Rounding rounding) {
    if (to == ElementType::kF8E8M0) {
        return EncodeE8M0(value, overflow, rounding);
    }
    const NarrowFormat format = FormatOf(to);
    const uint32_t lost = kF32Mantissa - format.mantissa_bits;
    const Id bits = BitsAs(b_.U32(), value);
    if (to == ElementType::kBF16 && overflow == Overflow::kSpecial &&
        rounding == Rounding::kNearestEven) {
        // The upper half; what is too great becomes infinity by itself.
        const Id half = Binary(Op::OpShiftRightLogical, bits, U(16));
        const Id odd = Binary(Op::OpBitwiseAnd, half, U(1));
        const Id rounded =
            Binary(Op::OpShiftRightLogical, b_.Add(b_.Add(bits, odd), U(0x7FFF)), U(16));
        const Id quiet =
            Binary(Op::OpBitwiseOr, Binary(Op::OpBitwiseAnd, half, U(0x8000)), U(format.nan()));
        return b_.Select(IsNan(value), quiet, rounded);
    }
    const Id magnitude = Binary(Op::OpBitwiseAnd, bits, U(0x7FFFFFFF));
    const Id negative = Test(Op::OpSLessThan, bits, U(0));
    const auto away_if = [&](Rounding direction) {  // whether this direction is away from zero
        return direction == Rounding::kUp ? b_.Not(negative) : negative;
    };
    // Adds what makes the shift round: half of the last place, all of it, or nothing.
    Id increment = 0;
    const uint32_t mask = (1U << lost) - 1;
    if (rounding == Rounding::kNearestEven) {
        const Id odd =
            Binary(Op::OpBitwiseAnd, Binary(Op::OpShiftRightLogical, magnitude, U(lost)), U(1));
        increment = b_.Add(odd, U(mask >> 1));
    } else {
        increment = b_.Select(away_if(rounding), U(mask), U(0));
    }
    Id code = b_.Sub(Binary(Op::OpShiftRightLogical, b_.Add(magnitude, increment), U(lost)),
                     U((kF32Bias - format.bias) << format.mantissa_bits));
    if (format.bias != kF32Bias) {
        // Below the least normal number: whole multiples of the least number.
        const int least = 1 - static_cast<int>(format.bias);
        const Id scaled =
            Binary(Op::OpFMul, BitsAs(b_.F32(), magnitude),
                   F(std::ldexp(1.0F, static_cast<int>(format.mantissa_bits) - least)));
        Id whole = 0;
        if (rounding == Rounding::kNearestEven) {
            whole = b_.Ext(b_.F32(), GLSLstd450RoundEven, {scaled});
        } else {
            whole = b_.Select(away_if(rounding), b_.Ext(b_.F32(), GLSLstd450Ceil, {scaled}),
                              b_.Ext(b_.F32(), GLSLstd450Floor, {scaled}));
        }
        const Id small = b_.ULess(magnitude, U(std::bit_cast<uint32_t>(std::ldexp(1.0F, least))));
        const Id safe = b_.Select(small, whole, F(0));
        code = b_.Select(small, b_.Op(Op::OpConvertFToU, b_.U32(), {safe}), code);
    }
    // What is too great: rounded towards zero it is the greatest number, but infinity is not.
    const uint32_t special = format.specials == Specials::kIeee ? format.top() : format.nan();
    const bool saturate = overflow == Overflow::kSaturate || format.specials == Specials::kNone;
    Id beyond = U(saturate ? format.greatest() : special);
    const Id infinite = Test(Op::OpIEqual, magnitude, U(0x7F800000));
    if (!saturate && rounding != Rounding::kNearestEven) {
        const Id keeps = b_.And(b_.Not(away_if(rounding)), b_.Not(infinite));
        beyond = b_.Select(keeps, U(format.greatest()), beyond);
    }
    // Codes below the bias wrapped to great ones only where the number is small.
    const Id over = b_.Or(infinite, Test(Op::OpSGreaterThan, code, U(format.greatest())));
    code = b_.Select(over, beyond, code);
    const Id sign = b_.Select(negative, U(format.sign_bit()), U(0));
    Id result = Binary(Op::OpBitwiseOr, code, sign);
    if (format.specials == Specials::kNanZero) {
        result = b_.Select(Test(Op::OpIEqual, code, U(0)), U(0), result);
    }
    // e4m3's NaN and f4's -0 for NaN; a NaN keeps its sign where the format has both.
    const bool signed_nan = format.specials == Specials::kIeee || format.specials == Specials::kNan;
    const Id nan = signed_nan ? Binary(Op::OpBitwiseOr, sign, U(format.nan())) : U(format.nan());
    return b_.Select(b_.ULess(U(0x7F800000), magnitude), nan, result);
}

Id Conversions::Decode(Id code, ElementType from) {
    if (from == ElementType::kF8E8M0) {
        const Id bits = Binary(Op::OpShiftLeftLogical, code, U(kF32Mantissa));
        const Id small = b_.Select(Test(Op::OpIEqual, code, U(0)), U(0x00400000), bits);
        const Id nan = Test(Op::OpIEqual, code, U(0xFF));
        return BitsAs(b_.F32(), b_.Select(nan, U(0x7FC00000), small));
    }
    if (from == ElementType::kBF16) {
        return BitsAs(b_.F32(), Binary(Op::OpShiftLeftLogical, code, U(16)));
    }
    if (from == ElementType::kF16) {
        const Id pair = b_.Ext(b_.Vector(b_.F32(), 2), GLSLstd450UnpackHalf2x16, {code});
        return b_.Op(Op::OpCompositeExtract, b_.F32(), {pair, 0});
    }
    const NarrowFormat format = FormatOf(from);
    const uint32_t bits = format.exponent_bits + format.mantissa_bits;
    const Id magnitude = Binary(Op::OpBitwiseAnd, code, U(format.sign_bit() - 1));
    const Id sign = Binary(Op::OpShiftLeftLogical,
                           Binary(Op::OpBitwiseAnd, code, U(format.sign_bit())), U(31 - bits));
    const Id normal =
        b_.Add(Binary(Op::OpShiftLeftLogical, magnitude, U(kF32Mantissa - format.mantissa_bits)),
               U((kF32Bias - format.bias) << kF32Mantissa));
    const int least = 1 - static_cast<int>(format.bias) - static_cast<int>(format.mantissa_bits);
    const Id small =
        BitsAs(b_.U32(), Binary(Op::OpFMul, b_.Op(Op::OpConvertUToF, b_.F32(), {magnitude}),
                                F(std::ldexp(1.0F, least))));
    Id number = b_.Select(b_.ULess(magnitude, U(1U << format.mantissa_bits)), small, normal);
    Id result = Binary(Op::OpBitwiseOr, number, sign);
    const Id nan = Binary(Op::OpBitwiseOr, U(0x7FC00000), sign);
    switch (format.specials) {
        case Specials::kIeee: {
            const Id infinite =
                Binary(Op::OpBitwiseOr, U(std::bit_cast<uint32_t>(kInfinity)), sign);
            result = b_.Select(Test(Op::OpIEqual, magnitude, U(format.top())), infinite, result);
            result = b_.Select(b_.ULess(U(format.top()), magnitude), nan, result);
            break;
        }
        case Specials::kNan:
            result = b_.Select(Test(Op::OpIEqual, magnitude, U(format.nan())), nan, result);
            break;
        case Specials::kNanZero:
            result = b_.Select(Test(Op::OpIEqual, code, U(format.nan())), nan, result);
            break;
        case Specials::kNone:
            break;
    }
    return BitsAs(b_.F32(), result);
}

Id Conversions::EncodeE8M0(Id value, Overflow overflow, Rounding rounding) {
    const Id bits = BitsAs(b_.U32(), value);
    const Id exponent = Binary(Op::OpShiftRightLogical, bits, U(kF32Mantissa));
    const Id mantissa = Binary(Op::OpBitwiseAnd, bits, U(0x7FFFFF));
    const Id half = U(0x400000);
    // A number from 2^-126 on becomes its exponent's code, or one more if it is rounded up.
    Id up = 0;
    if (rounding == Rounding::kNearestEven) {
        const Id odd = Test(Op::OpINotEqual, Binary(Op::OpBitwiseAnd, exponent, U(1)), U(0));
        up = b_.Or(b_.ULess(half, mantissa), b_.And(Test(Op::OpIEqual, mantissa, half), odd));
    } else {
        up = rounding == Rounding::kUp ? Test(Op::OpINotEqual, mantissa, U(0)) : b_.False();
    }
    const Id normal = b_.Add(exponent, b_.Select(up, U(1), U(0)));
    // Below: 2^-127 is 0x400000, 2^-128 0x200000. Code 0 is 2^-127 and code 1 is 2^-126.
    Id small_up = 0;
    if (rounding == Rounding::kNearestEven) {
        small_up = b_.ULess(U(0x600000), mantissa);  // 1.5 * 2^-127 goes to the even code 0
    } else {
        small_up = rounding == Rounding::kUp ? b_.ULess(half, mantissa) : b_.False();
    }
    // Below 2^-127 only what is rounded up to it is a number.
    const bool saturate = overflow == Overflow::kSaturate;
    const uint32_t none = saturate ? 0 : 0xFF;
    Id below_half = U(none);
    if (!saturate && rounding == Rounding::kUp) {
        below_half = b_.Select(Test(Op::OpINotEqual, mantissa, U(0)), U(0), U(none));
    } else if (!saturate && rounding == Rounding::kNearestEven) {
        // 2^-128 times 1.5 is a tie between codes -1 and 0, of which 0 is even.
        below_half = b_.Select(b_.ULess(mantissa, U(0x300000)), U(none), U(0));
    }
    const Id small =
        b_.Select(b_.ULess(mantissa, half), below_half, b_.Select(small_up, U(1), U(0)));
    const Id code = b_.Select(Test(Op::OpIEqual, exponent, U(0)), small, normal);
    const uint32_t too_great = saturate ? 0xFE : 0xFF;
    const Id bounded = b_.Select(Test(Op::OpIEqual, exponent, U(0xFF)), U(too_great),
                                 b_.Select(b_.ULess(U(0xFE), normal), U(too_great), code));
    const Id negative =
        b_.And(Test(Op::OpSLessThan, bits, U(0)), Test(Op::OpINotEqual, bits, U(0x80000000U)));
    const Id zero = Test(Op::OpIEqual, Binary(Op::OpBitwiseAnd, bits, U(0x7FFFFFFF)), U(0));
    const Id finite = b_.Select(zero, U(none), bounded);
    return b_.Select(b_.Or(IsNan(value), negative), U(0xFF), finite);
}

// --- Memory --------------------------------------------------------------------------------------

Id Conversions::StorageType(ElementType type) {
    switch (BytesOf(type)) {
        case 1:
            if (!target_.storage_8bit) {
                Reject("the device has no storage of 8 bits");
            }
            return b_.Int(8);
        case 2:
            if (!target_.storage_16bit) {
                Reject("the device has no storage of 16 bits");
            }
            return type == ElementType::kF16 ? b_.Float(16) : b_.Int(16);
        default:
            return TypeFor(type);
    }
}

Id Conversions::FromCode(Id code, ElementType type) {
    const Held held = HeldAs(type);
    switch (held) {
        case Held::kBool:
            return Test(Op::OpINotEqual, code, U(0));
        case Held::kI32:
            return Wrap(type, code);
        case Held::kI64:
            return code;
        case Held::kF64:
            return BitsAs(TypeFor(type), code);
        case Held::kF32:
            break;
    }
    return type == ElementType::kF32 ? BitsAs(b_.F32(), code) : Decode(code, type);
}

Id Conversions::CodeOf(Id value, ElementType type) {
    const Held held = HeldAs(type);
    switch (held) {
        case Held::kBool:
            return b_.Select(value, U(1), U(0));
        case Held::kI32: {
            const uint32_t bytes = BytesOf(type), bits = BitsOf(type);
            if (bytes == 4 || (!IsSigned(type) && bits == 8 * bytes)) {
                return value;
            }
            return Binary(Op::OpBitwiseAnd, value, U(bytes == 1 ? 0xFF : 0xFFFF));
        }
        case Held::kI64:
            return value;
        case Held::kF64:
            return BitsAs(TypeOf(Held::kI64), value);
        case Held::kF32:
            break;
    }
    return type == ElementType::kF32
               ? BitsAs(b_.U32(), value)
               : Encode(value, type, Overflow::kSpecial, Rounding::kNearestEven);
}

Id Conversions::FromStorage(Id stored, ElementType type) {
    const Held held = HeldAs(type);
    if (BytesOf(type) >= 4) {
        return stored;
    }
    if (type == ElementType::kF16) {
        return b_.Op(Op::OpFConvert, b_.F32(), {stored});
    }
    const bool whole = BitsOf(type) == 8 * BytesOf(type);
    if (held == Held::kI32 && IsSigned(type) && whole) {
        return b_.Op(Op::OpSConvert, b_.U32(), {stored});
    }
    const Id code = b_.Op(Op::OpUConvert, b_.U32(), {stored});
    if (held == Held::kI32 && whole) {
        return code;
    }
    if (type == ElementType::kF4E2M1) {
        return Decode(Binary(Op::OpBitwiseAnd, code, U(0xF)), type);
    }
    return FromCode(code, type);
}

Id Conversions::ToStorage(Id value, ElementType type) {
    if (BytesOf(type) >= 4) {
        return value;
    }
    if (type == ElementType::kF16) {
        return b_.Op(Op::OpFConvert, b_.Float(16), {value});
    }
    const Id code = HeldAs(type) == Held::kI32 ? value : CodeOf(value, type);
    return b_.Op(Op::OpUConvert, StorageType(type), {code});
}

}  // namespace fornax::graph::loop

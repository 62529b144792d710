// Operations on integers, floats, booleans and matrices.
#include "compiler/kernel/fuzz/generator_arithmetic.h"

#include <iterator>

#include "compiler/kernel/fuzz/generator_variables.h"

#include <spirv/unified1/GLSL.std.450.h>

namespace fornax::kernel::fuzz {

// Base and insert of bit fields, and what counts bits, have 32 bits in Vulkan
// (VUID-StandaloneSpirv-Base-04781).
Id ArithmeticGenerator::BitField(ValueType type) {
    constexpr ValueType kUint{Kind::kU32, 1, 1};
    auto place = [&] {
        return Chance(60) ? b_.Uint(Below(16))
                          : Emit(Op::OpBitwiseAnd, kUint, {values_.Any(kUint), b_.Uint(15)});
    };
    if (Chance(35)) {
        return Emit(
            Op::OpBitFieldInsert, type,
            {values_.Any(type), values_.Any(type), place(), Chance(5) ? b_.Uint(0) : place()});
    }
    return Emit(IsSigned(type.kind) ? Op::OpBitFieldSExtract : Op::OpBitFieldUExtract, type,
                {values_.Any(type), place(), place()});
}

Id ArithmeticGenerator::Glsl32(ValueType type) {
    static constexpr Op kCore[] = {Op::OpBitReverse, Op::OpBitCount};
    static constexpr uint32_t kGlsl[] = {GLSLstd450FindILsb, GLSLstd450FindSMsb,
                                         GLSLstd450FindUMsb};
    uint32_t choice = Below(6);
    if (choice < 2) {
        return Emit(kCore[choice], type, {values_.Any(type)});
    }
    if (choice == 5) {
        return BitField(type);
    }
    // FindSMsb reads a signed operand, FindUMsb an unsigned one.
    ValueType from = type.WithKind(choice == 3 ? Kind::kI32 : choice == 4 ? Kind::kU32 : type.kind);
    return Glsl(kGlsl[choice - 2], type, {values_.Any(from)});
}

Id ArithmeticGenerator::IntegerValue(ValueType type) {
    static constexpr Op kBinary[] = {Op::OpIAdd,      Op::OpIAdd,      Op::OpISub,
                                     Op::OpIMul,      Op::OpIMul,      Op::OpBitwiseAnd,
                                     Op::OpBitwiseOr, Op::OpBitwiseXor};
    static constexpr Op kShift[] = {Op::OpShiftLeftLogical, Op::OpShiftRightLogical,
                                    Op::OpShiftRightArithmetic};
    const uint32_t bits = BitsOf(type.kind);
    const bool is_signed = IsSigned(type.kind);
    ValueType other = type.WithKind(IntKind(bits, is_signed != Chance(15)));
    switch (Below(9)) {
        case 0:
            return Emit(Chance(50) ? Op::OpSNegate : Op::OpNot, type, {values_.Any(other)});
        case 1: {
            // 1 to 63: neither 0 nor -1.
            Id divisor = values_.Masked(type, 63);
            divisor = Emit(Op::OpBitwiseOr, type, {divisor, b_.Splat(type, 1)});
            if (Chance(40)) {
                divisor = b_.Splat(type, 1 + Below(20));
            }
            static constexpr Op kSigned[] = {Op::OpSDiv, Op::OpSRem, Op::OpSMod};
            static constexpr Op kUnsigned[] = {Op::OpUDiv, Op::OpUMod, Op::OpUMod};
            // Mesa 22's lavapipe sometimes gives OpSMod the dividend's sign.
            const uint32_t which = Below(state_.options.portable ? 2 : 3);
            return Emit(is_signed ? kSigned[which] : kUnsigned[which], type,
                        {values_.Any(type), divisor});
        }
        case 2: {
            ValueType amount = type.WithKind(Chance(70) ? type.kind : AnyIntKind());
            Id by = Chance(40) ? b_.Splat(amount, Below(bits)) : values_.Masked(amount, bits - 1);
            return Emit(kShift[Below(3)], type, {values_.Any(type), by});
        }
        case 3: {
            const uint32_t number = is_signed ? (Chance(50) ? GLSLstd450SMin : GLSLstd450SMax)
                                              : (Chance(50) ? GLSLstd450UMin : GLSLstd450UMax);
            return Glsl(number, type, {values_.Any(type), values_.Any(type)});
        }
        case 4: {
            if (!is_signed) {
                Id low = values_.Masked(type, 15);
                Id high = Emit(Op::OpBitwiseOr, type, {low, b_.Splat(type, 112)});
                return Glsl(GLSLstd450UClamp, type, {values_.Any(type), low, high});
            }
            return Glsl(Chance(50) ? GLSLstd450SAbs : GLSLstd450SSign, type, {values_.Any(type)});
        }
        case 5:
            if (bits == 32) {
                return Glsl32(type);
            }
            break;
        case 6:
            // The results' signedness: 0, except of SMulExtended (3.52.13).
            if (bits >= 32 && !is_signed) {
                static constexpr Op kPairs[] = {Op::OpIAddCarry, Op::OpISubBorrow,
                                                Op::OpUMulExtended, Op::OpSMulExtended};
                Id pair = b_.Emit(kPairs[Below(4)], b_.PairStruct(b_.Type(type)),
                                  {values_.Any(type), values_.Any(type)});
                return b_.Emit(Op::OpCompositeExtract, b_.Type(type), {pair, Below(2)});
            }
            break;
        default:
            break;
    }
    Op op = kBinary[Below(std::size(kBinary))];
    return Emit(op, type, {values_.Any(other), values_.Any(type)});
}

// Brings what an exact operation gave back to whole numbers and halves below 16.
Id ArithmeticGenerator::Small(ValueType type, Id value) {
    value = Glsl(GLSLstd450Floor, type, {value});
    value = Emit(Op::OpFMod, type, {value, b_.Splat(type, FloatBits(type.kind, 16))});
    if (Chance(20)) {
        value = Emit(Op::OpFMul, type, {value, b_.Splat(type, FloatBits(type.kind, 0.5))});
        if (Chance(30)) {
            value = Emit(Op::OpFNegate, type, {value});
        }
    }
    return value;
}

// Operands are multiples of one half below 16 in magnitude: sums and products of two are exact in
// f16's 11 bits already.
Id ArithmeticGenerator::ExactFloat(ValueType type) {
    static constexpr Op kBinary[] = {Op::OpFAdd, Op::OpFSub, Op::OpFMul};
    static constexpr uint32_t kUnary[] = {GLSLstd450FAbs, GLSLstd450FSign, GLSLstd450Floor,
                                          GLSLstd450Ceil, GLSLstd450Trunc, GLSLstd450RoundEven,
                                          GLSLstd450Fract};
    static constexpr uint32_t kMinMax[] = {GLSLstd450FMin, GLSLstd450FMax, GLSLstd450NMin,
                                           GLSLstd450NMax, GLSLstd450Step};
    const bool wide = type.kind != Kind::kF16;
    switch (Below(9)) {
        case 0:
            return Glsl(kUnary[Below(std::size(kUnary))], type, {values_.Any(type)});
        case 1:
            return Glsl(kMinMax[Below(std::size(kMinMax))], type,
                        {values_.Any(type), values_.Any(type)});
        case 2:
            return Emit(Op::OpFNegate, type, {values_.Any(type)});
        case 3:
            if (wide && type.rows == 1) {
                ValueType vector = type.WithRows(static_cast<uint8_t>(2 + Below(3)));
                return Small(type,
                             Emit(Op::OpDot, type, {values_.Any(vector), values_.Any(vector)}));
            }
            if (type.rows > 1) {
                return Small(type, Emit(Op::OpVectorTimesScalar, type,
                                        {values_.Any(type), values_.Any(type.Scalar())}));
            }
            break;
        case 4:
            if (wide) {
                return Small(type, Glsl(GLSLstd450Fma, type,
                                        {values_.Any(type), values_.Any(type), values_.Any(type)}));
            }
            break;
        case 5:
            if (wide && type.rows > 1) {
                return Small(type, MatrixProduct(type));
            }
            break;
        case 6: {
            Id by = b_.Splat(type, FloatBits(type.kind, Chance(50) ? 4 : -8));
            return Emit(Chance(50) ? Op::OpFRem : Op::OpFMod, type, {values_.Any(type), by});
        }
        default:
            break;
    }
    return Small(type, Emit(kBinary[Below(3)], type, {values_.Any(type), values_.Any(type)}));
}

// Only what is rounded correctly everywhere (Vulkan, Precision of Individual Operations), and no
// operation whose zero may have either sign.
Id ArithmeticGenerator::FreeFloat(ValueType type) {
    static constexpr Op kBinary[] = {Op::OpFAdd, Op::OpFSub, Op::OpFMul};
    static constexpr uint32_t kUnary[] = {GLSLstd450FAbs, GLSLstd450Floor, GLSLstd450Ceil,
                                          GLSLstd450Trunc, GLSLstd450RoundEven};
    switch (Below(8)) {
        case 0:
            return Glsl(kUnary[Below(std::size(kUnary))], type, {values_.Any(type)});
        case 1:
            return Emit(Op::OpFNegate, type, {values_.Any(type)});
        case 2:
            if (type.rows > 1) {
                return Emit(Op::OpVectorTimesScalar, type,
                            {values_.Any(type), values_.Any(type.Scalar())});
            } else {
                ValueType vector = type.WithRows(static_cast<uint8_t>(2 + Below(3)));
                return Emit(Op::OpDot, type, {values_.Any(vector), values_.Any(vector)});
            }
        case 3:
            if (type.rows > 1) {
                return MatrixProduct(type);
            }
            break;
        default:
            break;
    }
    return Emit(kBinary[Below(3)], type, {values_.Any(type), values_.Any(type)});
}

Id ArithmeticGenerator::FloatValue(ValueType type) {
    return state_.exact ? ExactFloat(type) : FreeFloat(type);
}

Id ArithmeticGenerator::MatrixValue(ValueType type, uint32_t depth) {
    uint32_t outer = state_.depth;
    state_.depth = depth ? depth - 1 : 0;
    Id id = 0;
    uint32_t choice = Below(8);
    if (choice < 3 && !state_.exact) {
        if (auto loaded = access_.LoadOf(type)) {
            id = *loaded;
        }
    } else if (choice == 3) {
        ValueType other{type.kind, type.columns, type.rows};
        id = Emit(
            Op::OpTranspose, type,
            {depth ? MatrixValue(other, depth - 1) : b_.Splat(other, FloatBits(type.kind, 2))});
    } else if (choice == 4 && !state_.exact) {
        ValueType row{type.kind, type.columns, 1};
        id = Emit(Op::OpOuterProduct, type, {values_.Any(type.Column()), values_.Any(row)});
    } else if (choice == 5 && depth) {
        Id scalar = state_.exact ? b_.Constant(type.kind, FloatBits(type.kind, 1))
                                 : values_.Any(type.Scalar());
        id = Emit(Op::OpMatrixTimesScalar, type, {MatrixValue(type, depth - 1), scalar});
    } else if (choice == 6 && depth && !state_.exact && type.kind != Kind::kF16) {
        ValueType left{type.kind, type.rows, 2};
        ValueType right{type.kind, 2, type.columns};
        id = Emit(Op::OpMatrixTimesMatrix, type,
                  {MatrixValue(left, depth - 1), MatrixValue(right, 0)});
    }
    if (!id) {
        std::vector<Id> columns;
        for (uint32_t i = 0; i < type.columns; ++i) {
            columns.push_back(values_.Value(type.Column(), 0));
        }
        id = b_.Emit(Op::OpCompositeConstruct, b_.Type(type), columns);
    }
    state_.depth = outer;
    return id;
}

Id ArithmeticGenerator::MatrixProduct(ValueType type) {
    const auto inner = static_cast<uint8_t>(2 + Below(3));
    ValueType vector{type.kind, inner, 1};
    if (Chance(50)) {
        ValueType matrix{type.kind, type.rows, inner};
        return Emit(Op::OpMatrixTimesVector, type,
                    {MatrixValue(matrix, state_.depth), values_.Any(vector)});
    }
    ValueType matrix{type.kind, inner, type.rows};
    Id left = values_.Any(vector);
    return Emit(Op::OpVectorTimesMatrix, type, {left, MatrixValue(matrix, state_.depth)});
}

Id ArithmeticGenerator::BoolValue(ValueType type) {
    static constexpr Op kUnsigned[] = {Op::OpIEqual,       Op::OpINotEqual,
                                       Op::OpULessThan,    Op::OpULessThanEqual,
                                       Op::OpUGreaterThan, Op::OpUGreaterThanEqual};
    static constexpr Op kSigned[] = {Op::OpIEqual,       Op::OpINotEqual,
                                     Op::OpSLessThan,    Op::OpSLessThanEqual,
                                     Op::OpSGreaterThan, Op::OpSGreaterThanEqual};
    static constexpr Op kFloat[] = {
        Op::OpFOrdEqual,           Op::OpFUnordEqual,          Op::OpFOrdNotEqual,
        Op::OpFUnordNotEqual,      Op::OpFOrdLessThan,         Op::OpFUnordLessThan,
        Op::OpFOrdGreaterThan,     Op::OpFUnordGreaterThan,    Op::OpFOrdLessThanEqual,
        Op::OpFUnordLessThanEqual, Op::OpFOrdGreaterThanEqual, Op::OpFUnordGreaterThanEqual};
    static constexpr Op kLogic[] = {Op::OpLogicalAnd, Op::OpLogicalOr, Op::OpLogicalEqual,
                                    Op::OpLogicalNotEqual};
    switch (Below(8)) {
        case 0:
            return Emit(Op::OpLogicalNot, type, {values_.Any(type)});
        case 1:
            return Emit(kLogic[Below(4)], type, {values_.Any(type), values_.Any(type)});
        case 2: {
            ValueType from = type.WithKind(AnyFloatKind());
            return Emit(kFloat[Below(std::size(kFloat))], type,
                        {values_.Any(from), values_.Any(from)});
        }
        case 3: {
            ValueType from = type.WithKind(AnyFloatKind());
            if (state_.exact) {
                break;
            }
            return Emit(Chance(50) ? Op::OpIsNan : Op::OpIsInf, type, {values_.Any(from)});
        }
        case 4:
            if (type.rows == 1) {
                ValueType vector{Kind::kBool, static_cast<uint8_t>(2 + Below(3)), 1};
                return Emit(Chance(50) ? Op::OpAny : Op::OpAll, type, {values_.Any(vector)});
            }
            break;
        default:
            break;
    }
    ValueType from = type.WithKind(AnyIntKind());
    const Op op = IsSigned(from.kind) ? kSigned[Below(6)] : kUnsigned[Below(6)];
    // Small numbers go either way more often.
    if (Chance(60)) {
        return Emit(op, type, {values_.Masked(from, 7), b_.Splat(from, Below(6))});
    }
    return Emit(op, type, {values_.Any(from), values_.Any(from)});
}

}  // namespace fornax::kernel::fuzz

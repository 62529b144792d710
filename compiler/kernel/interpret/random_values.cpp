// The values of random kernels: constants, what was computed before, and pure operations on them.
#include "compiler/kernel/interpret/random_values.h"

#include <bit>

#include "base/half.h"

namespace fornax::kernel {

using namespace ir;

Type RandomValues::AnyType() {
    static constexpr Type kTypes[] = {Type::kI32, Type::kI32,  Type::kI32, Type::kF32,
                                      Type::kF32, Type::kBool, Type::kI64, Type::kI16,
                                      Type::kI8,  Type::kF64,  Type::kF16};
    return kTypes[random_.Below(11)];
}

Type RandomValues::AnyFloat() {
    static constexpr Type kTypes[] = {Type::kF32, Type::kF32, Type::kF16, Type::kF64};
    return kTypes[random_.Below(4)];
}

void RandomValues::Add(ValueId value) {
    pool_[static_cast<size_t>(kernel_.type(value))].push_back(value);
}

ValueId RandomValues::Emit(Op op,
                           Type type,
                           std::initializer_list<ValueId> operands,
                           uint64_t imm) {
    const bool rounds =
        IsFloat(type) && (op == Op::kFAdd || op == Op::kFSub || op == Op::kFMul || op == Op::kFma);
    return b_.Emit(op, type, operands, imm, rounds ? kNoContraction : 0);
}

ValueId RandomValues::RandomConst(Type type) {
    static constexpr double kFloats[] = {0, 1, -1, 0.5, 2, -0.0, 3.25, -7, 1e4, 0.125};
    static constexpr uint64_t kIntegers[] = {0, 1, 2, 3, 4, 5, 7, 8, 15, 31, ~uint64_t{0}, 100};
    if (type == Type::kBool) {
        return b_.ConstBool(random_.Chance(50));
    }
    if (IsInteger(type)) {
        return b_.Const(type, kIntegers[random_.Below(std::size(kIntegers))]);
    }
    return FloatConst(type, kFloats[random_.Below(std::size(kFloats))]);
}

ValueId RandomValues::FloatConst(Type type, double value) {
    if (type == Type::kF16) {
        return b_.Const(type, DoubleToHalf(value));
    }
    if (type == Type::kF32) {
        return b_.ConstF32(static_cast<float>(value));
    }
    return b_.Const(type, std::bit_cast<uint64_t>(value));
}

ValueId RandomValues::Pick(Type type) {
    const auto& values = pool_[static_cast<size_t>(type)];
    if (values.empty() || random_.Chance(20)) {
        return RandomConst(type);
    }
    // Rather recent ones, so that chains form.
    size_t recent = std::min<size_t>(values.size(), random_.Chance(60) ? 6 : values.size());
    return values[values.size() - 1 - random_.Below(static_cast<uint32_t>(recent))];
}
ValueId RandomValues::Observable(ValueId value) {
    Type type = kernel_.type(value);
    if (!IsFloat(type)) {
        return value;
    }
    ValueId nan = Emit(Op::kIsNan, Type::kBool, {value});
    return Emit(Op::kSelect, type, {nan, b_.Const(type, 0), value});
}

ValueId RandomValues::Masked(Type type, uint32_t mask) {
    return Emit(Op::kAnd, type, {Pick(type), b_.Const(type, mask)});
}

ValueId RandomValues::Binary(Type type, std::span<const Op> ops) {
    return Emit(ops[random_.Below(static_cast<uint32_t>(ops.size()))], type,
                {Pick(type), Pick(type)});
}

ValueId RandomValues::Unary(Type type, std::span<const Op> ops) {
    return Emit(ops[random_.Below(static_cast<uint32_t>(ops.size()))], type, {Pick(type)});
}

ValueId RandomValues::IntegerOperation(Type type) {
    static constexpr Op kBinary[] = {Op::kIAdd, Op::kIAdd, Op::kISub, Op::kIMul,
                                     Op::kIMul, Op::kAnd,  Op::kOr,   Op::kXor,
                                     Op::kUMin, Op::kUMax, Op::kSMin, Op::kSMax};
    static constexpr Op kUnary[] = {Op::kINeg,     Op::kNot,     Op::kBitReverse,
                                    Op::kBitCount, Op::kFindLsb, Op::kFindUMsb,
                                    Op::kFindSMsb, Op::kSAbs,    Op::kSSign};
    static constexpr Op kDivide[] = {Op::kUDiv, Op::kSDiv, Op::kURem, Op::kSRem, Op::kSMod};
    static constexpr Op kShift[] = {Op::kShl, Op::kLShr, Op::kAShr};
    static constexpr Op kPair[] = {Op::kUAddCarry, Op::kUSubBorrow, Op::kUMulExtended,
                                   Op::kSMulExtended};
    static constexpr Op kDot[] = {Op::kSDot4, Op::kUDot4, Op::kSUDot4};
    uint32_t width = BitWidth(type);
    if (type == Type::kI32 && random_.Chance(5)) {
        return Emit(kDot[random_.Below(3)], type, {Pick(type), Pick(type), Pick(type)});
    }
    switch (random_.Below(10)) {
        case 0:
            return Unary(type, kUnary);
        case 1: {
            ValueId divisor = Pick(type);
            if (options_.portable) {  // not 0 and not -1
                divisor = Emit(Op::kAnd, type, {divisor, b_.Const(type, 0x3f)});
                divisor = Emit(Op::kOr, type, {divisor, b_.Const(type, 1)});
            }
            return Emit(kDivide[random_.Below(5)], type, {Pick(type), divisor});
        }
        case 2: {
            Type amount = random_.Chance(70) ? type : Type::kI32;
            return Emit(kShift[random_.Below(3)], type,
                        {Pick(type), options_.portable ? Masked(amount, width - 1) : Pick(amount)});
        }
        case 3:
            return Conversion(type);
        case 4:
            return Emit(Op::kSelect, type, {Pick(Type::kBool), Pick(type), Pick(type)});
        case 5: {
            ValueId offset = b_.ConstI32(random_.Below(width / 2));
            ValueId count = b_.ConstI32(random_.Below(width / 2 + 1));
            if (random_.Chance(30)) {
                offset = Masked(Type::kI32, width / 2 - 1);
            }
            if (random_.Chance(30)) {
                return Emit(Op::kBitFieldInsert, type, {Pick(type), Pick(type), offset, count});
            }
            return Emit(random_.Chance(50) ? Op::kBitFieldSExtract : Op::kBitFieldUExtract, type,
                        {Pick(type), offset, count});
        }
        case 6: {
            if (width < 32) {
                return Binary(type, kBinary);
            }
            Type types[] = {type, type};
            ValueId operands[] = {Pick(type), Pick(type)};
            InstId pair = b_.Append(kPair[random_.Below(4)], operands, types);
            Add(kernel_.inst(pair).results[1]);
            return kernel_.inst(pair).results[0];
        }
        default:
            return Binary(type, kBinary);
    }
}

ValueId RandomValues::Conversion(Type type) {
    static constexpr Type kIntegers[] = {Type::kI8, Type::kI16, Type::kI32, Type::kI64};
    Type from = kIntegers[random_.Below(4)];
    if (random_.Chance(25)) {  // from a float
        Type source = AnyFloat();
        ValueId value = Pick(source);
        if (options_.portable) {  // in range, whatever the width
            value = Emit(Op::kNMax, source, {value, FloatConst(source, 0)});
            value = Emit(Op::kNMin, source, {value, FloatConst(source, 100)});
        }
        return Emit(random_.Chance(50) ? Op::kFToS : Op::kFToU, type, {value});
    }
    if (BitWidth(type) >= 16 && random_.Chance(20)) {
        return Emit(Op::kBitcast, type, {Observable(Pick(FloatType(BitWidth(type))))});
    }
    if (from == type) {
        return Emit(Op::kINeg, type, {Pick(type)});
    }
    if (BitWidth(from) > BitWidth(type)) {
        return Emit(Op::kTrunc, type, {Pick(from)});
    }
    return Emit(random_.Chance(50) ? Op::kZExt : Op::kSExt, type, {Pick(from)});
}

ValueId RandomValues::AnyWidth(ValueId offset) {
    if (kernel_.type(offset) == Type::kI64 || random_.Chance(60)) {
        return offset;
    }
    ValueId wide = b_.Emit(random_.Chance(70) ? Op::kZExt : Op::kSExt, Type::kI64, {offset});
    if (random_.Chance(10)) {
        const uint64_t beyond = uint64_t{1 + random_.Below(3)} << 32;
        wide = b_.Emit(Op::kIAdd, Type::kI64, {wide, b_.Const(Type::kI64, beyond)});
    }
    return wide;
}

ValueId RandomValues::ElementOffset(ValueId index, uint32_t bytes) {
    if (random_.Chance(50)) {
        return Emit(Op::kIMul, Type::kI32, {index, b_.ConstI32(bytes)});
    }
    ValueId wide = b_.Emit(Op::kSExt, Type::kI64, {index}, 0, kNoLaneWrap);
    return b_.Emit(Op::kIMul, Type::kI64, {wide, b_.Const(Type::kI64, bytes)});
}

ValueId RandomValues::FloatOperation(Type type) {
    static constexpr Op kBinary[] = {Op::kFAdd, Op::kFSub, Op::kFMul, Op::kFAdd, Op::kFMul,
                                     Op::kNMin, Op::kNMax, Op::kFMin, Op::kFMax, Op::kFDiv,
                                     Op::kFRem, Op::kFMod, Op::kPow,  Op::kATan2};
    static constexpr Op kUnary[] = {
        Op::kFNeg,  Op::kFAbs, Op::kFloor, Op::kCeil, Op::kRoundEven, Op::kFTruncate, Op::kFSign,
        Op::kFract, Op::kSqrt, Op::kRSqrt, Op::kExp,  Op::kLog2,      Op::kSin,       Op::kTanh};
    switch (random_.Below(6)) {
        case 0:
            return Unary(type, std::span(kUnary).first(options_.portable ? 6 : 14));
        case 1:
            return Emit(Op::kSelect, type, {Pick(Type::kBool), Pick(type), Pick(type)});
        case 2: {
            if (random_.Chance(50)) {
                static constexpr Type kIntegers[] = {Type::kI8, Type::kI16, Type::kI32, Type::kI64};
                return Emit(random_.Chance(50) ? Op::kSToF : Op::kUToF, type,
                            {Pick(kIntegers[random_.Below(4)])});
            }
            Type from = AnyFloat();
            return from == type ? Emit(Op::kFNeg, type, {Pick(type)})
                                : Emit(Op::kFConvert, type, {Pick(from)});
        }
        case 3:
            if (options_.portable) {
                return Binary(type, std::span(kBinary).first(5));
            }
            return Emit(Op::kFma, type, {Pick(type), Pick(type), Pick(type)});
        default:
            return Binary(type, std::span(kBinary).first(options_.portable ? 5 : 14));
    }
}

ValueId RandomValues::BoolOperation() {
    static constexpr Op kInteger[] = {Op::kIEq, Op::kINe, Op::kULt, Op::kULe, Op::kSLt, Op::kSLe};
    static constexpr Op kFloat[] = {Op::kFOEq, Op::kFONe, Op::kFOLt, Op::kFOLe,
                                    Op::kFUEq, Op::kFUNe, Op::kFULt, Op::kFULe};
    static constexpr Op kLogic[] = {Op::kAnd, Op::kOr, Op::kXor};
    switch (random_.Below(6)) {
        case 0:
            return Binary(Type::kBool, kLogic);
        case 1:
            return Emit(Op::kNot, Type::kBool, {Pick(Type::kBool)});
        case 2: {
            Type type = AnyFloat();
            return Emit(kFloat[random_.Below(8)], Type::kBool, {Pick(type), Pick(type)});
        }
        case 3:
            return Emit(random_.Chance(50) ? Op::kIsNan : Op::kIsInf, Type::kBool,
                        {Pick(AnyFloat())});
        default: {
            static constexpr Type kIntegers[] = {Type::kI64, Type::kI16, Type::kI8};
            Type type = random_.Chance(70) ? Type::kI32 : kIntegers[random_.Below(3)];
            return Emit(kInteger[random_.Below(6)], Type::kBool, {Pick(type), Pick(type)});
        }
    }
}

void RandomValues::PureStatement() {
    Type type = AnyType();
    Add(type == Type::kBool ? BoolOperation()
        : IsFloat(type)     ? FloatOperation(type)
                            : IntegerOperation(type));
}

}  // namespace fornax::kernel

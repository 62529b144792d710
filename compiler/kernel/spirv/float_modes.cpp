// Flushing and rounding towards zero, written out in operations that do neither.
//
// Rounding: the operation is done to nearest, its error is found without another one, and where the
// result is the one of the two neighbours that lies farther from zero, it steps back by one. Floats
// of one sign are ordered as their bits are, and infinity follows the largest finite one, so one
// step back from an overflow is right as well.
#include "compiler/kernel/spirv/float_modes.h"

#include <bit>

#include "compiler/kernel/ir/half.h"

namespace fornax::kernel::spirv {

using ir::Op;
using ir::Type;
using ir::ValueId;

namespace {

uint64_t ExponentMask(Type type) {
    return type == Type::kF16 ? 0x7c00 : type == Type::kF32 ? 0x7f800000 : 0x7ff0000000000000;
}

uint64_t SignMask(Type type) {
    return uint64_t{1} << (ir::BitWidth(type) - 1);
}

}  // namespace

// What is emitted here counts on each of its roundings.
ValueId FloatModes::Emit(Op op, Type type, std::initializer_list<ValueId> operands) {
    return builder_.Emit(op, type, operands, 0, ir::kNoContraction);
}

ValueId FloatModes::Real(Type type, double value) {
    if (type == Type::kF64)
        return builder_.Const(type, std::bit_cast<uint64_t>(value));
    if (type == Type::kF16)
        return builder_.Const(type, ir::FloatToHalf(static_cast<float>(value)));
    return builder_.ConstF32(static_cast<float>(value));
}

ValueId FloatModes::Flush(ValueId value) {
    const Type type = TypeOf(value);
    if (!ir::IsFloat(type) || !Flushes(type) || flushed_.contains(value.index))
        return value;
    ValueId result = value;
    uint64_t constant = 0;
    if (builder_.kernel().IsConst(value, &constant)) {
        if ((constant & ExponentMask(type)) == 0)
            result = builder_.Const(type, constant & SignMask(type));
    } else {
        const Type bits = ir::IntegerType(ir::BitWidth(type));
        const ValueId word = builder_.Emit(Op::kBitcast, bits, {value});
        const ValueId exponent =
            builder_.Emit(Op::kAnd, bits, {word, builder_.Const(bits, ExponentMask(type))});
        const ValueId small =
            builder_.Emit(Op::kIEq, Type::kBool, {exponent, builder_.Const(bits, 0)});
        const ValueId sign =
            builder_.Emit(Op::kAnd, bits, {word, builder_.Const(bits, SignMask(type))});
        const ValueId kept = builder_.Emit(Op::kSelect, bits, {small, sign, word});
        result = builder_.Emit(Op::kBitcast, type, {kept});
    }
    flushed_.insert(result.index);
    return result;
}

ValueId FloatModes::Rounded(Op op, Type type, std::span<const ValueId> operands) {
    switch (op) {
        case Op::kFAdd:
            return Sum(operands[0], operands[1]);
        case Op::kFSub:
            return Sum(operands[0], Emit(Op::kFNeg, type, {operands[1]}));
        case Op::kFMul:
            return Product(operands[0], operands[1]);
        case Op::kFma:
            // "Inherited from OpFMul followed by OpFAdd" (Vulkan, Precision of GLSL.std.450).
            return Sum(Product(operands[0], operands[1]), operands[2]);
        case Op::kFConvert:
            return ir::BitWidth(type) < ir::BitWidth(TypeOf(operands[0]))
                       ? Narrowed(operands[0], type)
                       : ValueId{};
        case Op::kSToF:
        case Op::kUToF:
            return OfInteger(operands[0], type, op == Op::kSToF);
        default:
            return {};
    }
}

ValueId FloatModes::StepIf(ValueId condition, ValueId value) {
    const Type type = TypeOf(value);
    const Type bits = ir::IntegerType(ir::BitWidth(type));
    const ValueId word = builder_.Emit(Op::kBitcast, bits, {value});
    const ValueId back = builder_.Emit(Op::kISub, bits, {word, builder_.Const(bits, 1)});
    return builder_.Emit(Op::kBitcast, type,
                         {builder_.Emit(Op::kSelect, bits, {condition, back, word})});
}

// `result` + `error` is exact, or `error` has the sign that it would have.
ValueId FloatModes::StepBack(ValueId result, ValueId error) {
    const ValueId zero = Real(TypeOf(result), 0);
    auto less = [&](ValueId a, ValueId b) { return Emit(Op::kFOLt, Type::kBool, {a, b}); };
    const ValueId above =
        builder_.Emit(Op::kAnd, Type::kBool, {less(zero, result), less(error, zero)});
    const ValueId below =
        builder_.Emit(Op::kAnd, Type::kBool, {less(result, zero), less(zero, error)});
    return StepIf(builder_.Emit(Op::kOr, Type::kBool, {above, below}), result);
}

ValueId FloatModes::TowardsZero(ValueId wide, ValueId nearest) {
    const Type type = TypeOf(wide);
    const ValueId back = Emit(Op::kFConvert, type, {nearest});
    const ValueId beyond = Emit(Op::kFOLt, Type::kBool,
                                {Emit(Op::kFAbs, type, {wide}), Emit(Op::kFAbs, type, {back})});
    return StepIf(beyond, nearest);
}

ValueId FloatModes::Narrowed(ValueId wide, Type type) {
    return TowardsZero(wide, Emit(Op::kFConvert, type, {wide}));
}

// Dekker's sum: with the larger magnitude first, both differences are exact. An infinity that came
// of finite values has an error of the other sign; one that was there has NaN for an error.
ValueId FloatModes::Sum(ValueId a, ValueId b) {
    const Type type = TypeOf(a);
    const ValueId swap =
        Emit(Op::kFOLt, Type::kBool, {Emit(Op::kFAbs, type, {a}), Emit(Op::kFAbs, type, {b})});
    const ValueId larger = Emit(Op::kSelect, type, {swap, b, a});
    const ValueId smaller = Emit(Op::kSelect, type, {swap, a, b});
    const ValueId sum = Emit(Op::kFAdd, type, {larger, smaller});
    const ValueId added = Emit(Op::kFSub, type, {sum, larger});
    return StepBack(sum, Emit(Op::kFSub, type, {smaller, added}));
}

ValueId FloatModes::Product(ValueId a, ValueId b) {
    const Type type = TypeOf(a);
    if (type != Type::kF64) {
        // Twice the digits and more than twice the exponents: the wide product is exact.
        const Type wide = type == Type::kF16 ? Type::kF32 : Type::kF64;
        return Narrowed(
            Emit(Op::kFMul, wide, {Emit(Op::kFConvert, wide, {a}), Emit(Op::kFConvert, wide, {b})}),
            type);
    }
    // The error of a product is what a fused operation leaves of it, unless that is too small to be
    // a number. Products below 2^-900 have a factor below 2^-450, which is made larger by 2^600.
    const ValueId product = Emit(Op::kFMul, type, {a, b});
    const ValueId swap =
        Emit(Op::kFOLt, Type::kBool, {Emit(Op::kFAbs, type, {a}), Emit(Op::kFAbs, type, {b})});
    const ValueId larger = Emit(Op::kSelect, type, {swap, b, a});
    const ValueId smaller = Emit(Op::kSelect, type, {swap, a, b});
    const ValueId tiny =
        Emit(Op::kFOLt, Type::kBool, {Emit(Op::kFAbs, type, {product}), Real(type, 0x1p-900)});
    const ValueId scale = Emit(Op::kSelect, type, {tiny, Real(type, 0x1p600), Real(type, 1)});
    const ValueId scaled = Emit(Op::kFMul, type, {product, scale});
    const ValueId error =
        Emit(Op::kFma, type,
             {larger, Emit(Op::kFMul, type, {smaller, scale}), Emit(Op::kFNeg, type, {scaled})});
    return StepBack(product, error);
}

// By way of f64, which holds integers of 32 bits; cutting off digits twice cuts off the same.
ValueId FloatModes::OfInteger(ValueId value, Type type, bool is_signed) {
    const Type f64 = Type::kF64;
    const Type integer = TypeOf(value);
    ValueId wide;
    if (integer == Type::kI64) {
        const ValueId half = builder_.Const(integer, 32);
        const ValueId upper =
            builder_.Emit(is_signed ? Op::kAShr : Op::kLShr, integer, {value, half});
        const ValueId lower =
            builder_.Emit(Op::kAnd, integer, {value, builder_.Const(integer, UINT32_MAX)});
        const ValueId high = Emit(is_signed ? Op::kSToF : Op::kUToF, f64, {upper});
        wide = Sum(Emit(Op::kFMul, f64, {high, Real(f64, 0x1p32)}), Emit(Op::kUToF, f64, {lower}));
    } else {
        wide = Emit(is_signed ? Op::kSToF : Op::kUToF, f64, {value});
    }
    return type == f64 ? wide : Narrowed(wide, type);
}

}  // namespace fornax::kernel::spirv

// Flushing and rounding towards zero, written out in operations that do neither.
//
// Rounding: the operation is done to nearest, its error is found without another one, and where the
// result is the one of the two neighbours that lies farther from zero, it steps back by one. Floats
// of one sign are ordered as their bits are, and infinity follows the largest finite one, so one
// step back from an overflow is right as well.
#include "compiler/kernel/spirv/float_modes.h"

#include <bit>
#include <limits>

#include "base/half.h"

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
    if (type == Type::kF64) {
        return builder_.Const(type, std::bit_cast<uint64_t>(value));
    }
    if (type == Type::kF16) {
        return builder_.Const(type, FloatToHalf(static_cast<float>(value)));
    }
    return builder_.ConstF32(static_cast<float>(value));
}

ValueId FloatModes::Flush(ValueId value) {
    const Type type = TypeOf(value);
    if (!ir::IsFloat(type) || !Flushes(type) || flushed_.contains(value.value())) {
        return value;
    }
    ValueId result = value;
    uint64_t constant = 0;
    if (builder_.kernel().IsConst(value, &constant)) {
        if ((constant & ExponentMask(type)) == 0) {
            result = builder_.Const(type, constant & SignMask(type));
        }
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
    flushed_.insert(result.value());
    return result;
}

// Equal numbers other than zeros have equal bits. Of two zeros the minimum is negative if either
// is, the maximum if both are.
ValueId FloatModes::ExtremeOfZeros(Op op, ValueId a, ValueId b, ValueId result) {
    const Type type = TypeOf(result);
    for (const ValueId operand : {a, b}) {
        uint64_t constant = 0;
        if (builder_.kernel().IsConst(operand, &constant) && (constant & ~SignMask(type)) != 0) {
            return result;
        }
    }
    const Type bits = ir::IntegerType(ir::BitWidth(type));
    const bool minimum = op == Op::kFMin || op == Op::kNMin;
    const ValueId joined = builder_.Emit(
        minimum ? Op::kOr : Op::kAnd, bits,
        {builder_.Emit(Op::kBitcast, bits, {a}), builder_.Emit(Op::kBitcast, bits, {b})});
    const ValueId equal = builder_.Emit(Op::kFOEq, Type::kBool, {a, b});
    return builder_.Emit(Op::kSelect, type,
                         {equal, builder_.Emit(Op::kBitcast, type, {joined}), result});
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

ValueId FloatModes::Fused(ValueId a, ValueId b, ValueId c) {
    const Type type = TypeOf(a);
    const bool to_zero = RoundsTowardsZero(type);
    if (type == Type::kF64) {
        return to_zero ? FusedTowardsZero(a, b, c) : Emit(Op::kFma, type, {a, b, c});
    }
    if (type == Type::kF32 && !to_zero) {
        return Emit(Op::kFma, type, {a, b, c});
    }
    // The product is exact in f64. A sum that is cut there loses nothing that a second cut would
    // keep; one that is rounded to nearest is exact for halves as long as it is less than infinity,
    // or has an addend that is too small to make a tie.
    auto widen = [&](ValueId value) { return Emit(Op::kFConvert, Type::kF64, {value}); };
    const ValueId product = Emit(Op::kFMul, Type::kF64, {widen(a), widen(b)});
    if (to_zero) {
        return Narrowed(Sum(product, widen(c)), type);
    }
    return Emit(Op::kFConvert, type, {Emit(Op::kFAdd, Type::kF64, {product, widen(c)})});
}

// The sign of a fused operation's error (Boldo and Muller, Exact and Approximated Error of the FMA,
// 2011), with all terms moved to where none of their errors is too small to be a number. What is
// too small all the same lies so far below the rest that its sign is all that counts.
ValueId FloatModes::FusedTowardsZero(ValueId a, ValueId b, ValueId c) {
    const Type type = Type::kF64;
    auto magnitude = [&](ValueId x) { return Emit(Op::kFAbs, type, {x}); };
    auto less = [&](ValueId x, ValueId y) { return Emit(Op::kFOLt, Type::kBool, {x, y}); };
    auto select = [&](ValueId condition, ValueId x, ValueId y) {
        return Emit(Op::kSelect, type, {condition, x, y});
    };
    const ValueId fused = Emit(Op::kFma, type, {a, b, c});
    const ValueId zero = Real(type, 0);
    const ValueId plain = magnitude(Emit(Op::kFMul, type, {a, b}));
    const ValueId addend = magnitude(c);
    const ValueId most = select(less(plain, addend), addend, plain);
    const ValueId scale =
        select(less(most, Real(type, 0x1p-800)), Real(type, 0x1p600),
               select(less(most, Real(type, 0x1p900)), Real(type, 1), Real(type, 0x1p-200)));
    // The factor that has the most room takes the scale.
    const ValueId swap = less(magnitude(a), magnitude(b));
    const ValueId larger = select(swap, b, a);
    const ValueId smaller = select(swap, a, b);
    const ValueId shrinks = less(scale, Real(type, 1));
    const ValueId x = select(shrinks, Emit(Op::kFMul, type, {larger, scale}), larger);
    const ValueId y = select(shrinks, smaller, Emit(Op::kFMul, type, {smaller, scale}));
    // A term that vanished is the smallest number of its sign.
    const Type bits = ir::IntegerType(64);
    auto present = [&](ValueId term, ValueId there, ValueId sign) {
        const ValueId word = builder_.Emit(Op::kBitcast, bits, {sign});
        const ValueId least = builder_.Emit(
            Op::kOr, bits,
            {builder_.Emit(Op::kAnd, bits, {word, builder_.Const(bits, SignMask(type))}),
             builder_.Const(bits, 1)});
        const ValueId gone = builder_.Emit(Op::kAnd, Type::kBool,
                                           {Emit(Op::kFOEq, Type::kBool, {term, zero}), there});
        return select(gone, builder_.Emit(Op::kBitcast, type, {least}), term);
    };
    auto nonzero = [&](ValueId value) { return Emit(Op::kFONe, Type::kBool, {value, zero}); };
    const ValueId raw = Emit(Op::kFMul, type, {x, y});
    const ValueId rest = Emit(Op::kFma, type, {x, y, Emit(Op::kFNeg, type, {raw})});
    const ValueId factors = builder_.Emit(Op::kAnd, Type::kBool, {nonzero(a), nonzero(b)});
    const ValueId product = present(raw, factors, raw);
    const ValueId scaled = Emit(Op::kFMul, type, {c, scale});
    const ValueId sum = present(scaled, nonzero(c), c);
    struct Pair {
        ValueId value;
        ValueId error;
    };
    auto two_sum = [&](ValueId p, ValueId q) {
        const ValueId reversed = less(magnitude(p), magnitude(q));
        const ValueId first = select(reversed, q, p);
        const ValueId second = select(reversed, p, q);
        const ValueId value = Emit(Op::kFAdd, type, {first, second});
        const ValueId added = Emit(Op::kFSub, type, {value, first});
        return Pair{value, Emit(Op::kFSub, type, {second, added})};
    };
    const Pair low = two_sum(sum, rest);
    const Pair high = two_sum(product, low.value);
    const ValueId result = Emit(Op::kFMul, type, {fused, scale});
    const ValueId left =
        Emit(Op::kFAdd, type, {Emit(Op::kFSub, type, {high.value, result}), high.error});
    const ValueId error = Emit(Op::kFAdd, type, {left, low.error});
    // Infinity that came of numbers lies beyond them, however far.
    const ValueId infinity = Real(type, std::numeric_limits<double>::infinity());
    ValueId overflow = Emit(Op::kFOEq, Type::kBool, {magnitude(fused), infinity});
    for (ValueId operand : {a, b, c}) {
        overflow =
            builder_.Emit(Op::kAnd, Type::kBool, {overflow, less(magnitude(operand), infinity)});
    }
    return StepBack(fused, select(overflow, Emit(Op::kFNeg, type, {fused}), error));
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

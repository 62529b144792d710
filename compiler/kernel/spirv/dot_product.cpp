// Integer dot products (SPIR-V 1.6 and SPV_KHR_integer_dot_product), and those of bfloat16 that are
// added in binary32 (SPV_VALVE_mixed_float_dot_product). Vectors of 8-bit components and of
// bfloat16 are packed into words, for which the IR has operations.
#include "compiler/kernel/spirv/arithmetic.h"

namespace fornax::kernel::spirv {

using spv::Op;

// The sum in the accumulator's type, or its nearest end.
ir::ValueId Arithmetic::AddSaturating(ir::ValueId a, ir::ValueId b, bool is_signed) {
    const ir::Type type = kernel_.type(a);
    const uint32_t width = ir::BitWidth(type);
    const uint64_t most = ~uint64_t{0} >> (64 - width);
    if (!is_signed) {
        const ir::Type types[] = {type, type};
        const ir::ValueId operands[] = {a, b};
        const ir::InstId add = builder_.Append(ir::Op::kUAddCarry, operands, types);
        const ir::ValueId sum = kernel_.inst(add).results[0];
        const ir::ValueId carry = kernel_.inst(add).results[1];
        const ir::ValueId beyond =
            Emit(ir::Op::kINe, ir::Type::kBool, {carry, builder_.Const(type, 0)});
        return Emit(ir::Op::kSelect, type, {beyond, builder_.Const(type, most), sum});
    }
    // Beyond the range, the sum's sign is neither operand's.
    const ir::ValueId sum = Emit(ir::Op::kIAdd, type, {a, b});
    const ir::ValueId flipped =
        Emit(ir::Op::kAnd, type,
             {Emit(ir::Op::kXor, type, {a, sum}), Emit(ir::Op::kXor, type, {b, sum})});
    const ir::ValueId beyond =
        Emit(ir::Op::kSLt, ir::Type::kBool, {flipped, builder_.Const(type, 0)});
    const ir::ValueId sign =
        Emit(ir::Op::kAShr, type, {b, builder_.Const(type, width - 1)});  // 0 or -1
    const ir::ValueId end = Emit(ir::Op::kXor, type, {sign, builder_.Const(type, most >> 1)});
    return Emit(ir::Op::kSelect, type, {beyond, end, sum});
}

Status Arithmetic::IntegerDot(const Inst& inst) {
    const bool first_signed = inst.op != Op::OpUDot && inst.op != Op::OpUDotAccSat;
    const bool second_signed = inst.op == Op::OpSDot || inst.op == Op::OpSDotAccSat;
    const bool accumulates =
        inst.op == Op::OpSDotAccSat || inst.op == Op::OpUDotAccSat || inst.op == Op::OpSUDotAccSat;
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    FORNAX_ASSIGN_OR_RETURN(Tuple a, values_.UseTuple(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Tuple b, values_.UseTuple(inst, inst[1]));
    const ir::Type result = types_.ScalarOf(*type);
    if (type->scalars != 1 || !ir::IsInteger(result) || a.size() != b.size()) {
        return Invalid(inst, "has operands that do not fit its result type");
    }
    const ir::Type part = kernel_.type(a[0]);
    if (!ir::IsInteger(part) || kernel_.type(b[0]) != part) {
        return Invalid(inst, "has operands that do not fit its result type");
    }
    const size_t format_at = accumulates ? 3 : 2;
    const bool packed = inst.size() > format_at;
    if (packed && (inst[format_at] !=
                       static_cast<uint32_t>(spv::PackedVectorFormat::PackedVectorFormat4x8Bit) ||
                   a.size() != 1 || part != ir::Type::kI32)) {
        return Invalid(inst, "has a packed format that its operands do not have");
    }
    if (!packed && (a.size() < 2 || ir::BitWidth(part) > ir::BitWidth(result))) {
        return Invalid(inst, "has operands that do not fit its result type");
    }

    auto resize = [&](ir::ValueId value, bool is_signed) {
        const uint32_t from = ir::BitWidth(kernel_.type(value));
        const uint32_t to = ir::BitWidth(result);
        if (from == to) {
            return value;
        }
        return Emit(to < from   ? ir::Op::kTrunc
                    : is_signed ? ir::Op::kSExt
                                : ir::Op::kZExt,
                    result, {value});
    };
    ir::ValueId sum;
    if (packed || (part == ir::Type::kI8 && a.size() <= 4)) {
        auto word_of = [&](const Tuple& bytes) {
            if (packed) {
                return bytes[0];
            }
            ir::ValueId word = Emit(ir::Op::kZExt, ir::Type::kI32, {bytes[0]});
            for (uint32_t i = 1; i < bytes.size(); ++i) {
                ir::ValueId byte = Emit(ir::Op::kZExt, ir::Type::kI32, {bytes[i]});
                byte = Emit(ir::Op::kShl, ir::Type::kI32, {byte, Int(8 * i)});
                word = Emit(ir::Op::kOr, ir::Type::kI32, {word, byte});
            }
            return word;
        };
        const ir::Op op = second_signed  ? ir::Op::kSDot4
                          : first_signed ? ir::Op::kSUDot4
                                         : ir::Op::kUDot4;
        sum = Emit(op, ir::Type::kI32, {word_of(a), word_of(b), Int(0)});
        sum = resize(sum, first_signed);
    } else {
        for (size_t i = 0; i < a.size(); ++i) {
            const ir::ValueId product = Emit(
                ir::Op::kIMul, result, {resize(a[i], first_signed), resize(b[i], second_signed)});
            sum = i == 0 ? product : Emit(ir::Op::kIAdd, result, {sum, product});
        }
    }
    if (accumulates) {
        FORNAX_ASSIGN_OR_RETURN(ir::ValueId accumulator, values_.UseScalar(inst, inst[2]));
        if (kernel_.type(accumulator) != result) {
            return Invalid(inst, "has an accumulator of another type than its result");
        }
        sum = AddSaturating(sum, accumulator, first_signed);
    }
    return values_.Define(inst, {sum});
}

// The accumulator and the result are of binary32, or both of bfloat16.
Status Arithmetic::MixedFloatDot(const Inst& inst) {
    const bool narrow = inst.op == Op::OpFDot2MixAcc16VALVE;
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    FORNAX_ASSIGN_OR_RETURN(Tuple a, values_.UseTuple(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Tuple b, values_.UseTuple(inst, inst[1]));
    FORNAX_ASSIGN_OR_RETURN(ir::ValueId sum, values_.UseScalar(inst, inst[2]));
    for (const uint32_t operand : {0, 1, 2}) {
        FORNAX_ASSIGN_OR_RETURN(const Type* given, values_.ValueType(inst, inst[operand]));
        if ((operand < 2 || narrow) && !types_.IsBFloat16(*given)) {
            return Unsupported(inst, "has operands of other elements than bfloat16");
        }
    }
    const bool fits =
        narrow ? types_.IsBFloat16(*type)
               : types_.ScalarOf(*type) == ir::Type::kF32 && kernel_.type(sum) == ir::Type::kF32;
    if (!fits || type->scalars != 1 || a.size() != 2 || b.size() != 2) {
        return Invalid(inst, "has operands that do not fit its result type");
    }
    if (narrow) {
        sum = FromBFloat16(sum);
    }
    if (modes_.PreservesDenormals(ir::Type::kF32)) {
        for (const size_t i : {0, 1}) {
            sum = Emit(ir::Op::kFma, ir::Type::kF32, {FromBFloat16(a[i]), FromBFloat16(b[i]), sum});
        }
    } else {
        sum = Emit(ir::Op::kBFloatDot2, ir::Type::kF32, {WordOfHalves(a), WordOfHalves(b), sum});
    }
    return values_.Define(inst, {narrow ? ToBFloat16(sum) : sum});
}

// The word of two elements of 16 bits, the first in the lower half; the one that they were taken
// from, if there is one (Bitcast).
ir::ValueId Arithmetic::WordOfHalves(const Tuple& halves) {
    const auto shifted = [&](ir::ValueId half, uint32_t by) -> ir::ValueId {
        const ir::Instruction* part = kernel_.Definition(half);
        const ir::Instruction* shift = part != nullptr && part->op == ir::Op::kTrunc
                                           ? kernel_.Definition(part->operands[0])
                                           : nullptr;
        uint64_t amount = 0;
        const bool is_word = shift != nullptr && shift->op == ir::Op::kLShr &&
                             kernel_.type(shift->results[0]) == ir::Type::kI32 &&
                             kernel_.IsConst(shift->operands[1], &amount) && amount == by;
        return is_word ? shift->operands[0] : ir::ValueId();
    };
    const ir::ValueId word = shifted(halves[1], 16);
    if (word.valid() && shifted(halves[0], 0) == word) {
        return word;
    }
    const ir::ValueId low = Emit(ir::Op::kZExt, ir::Type::kI32, {halves[0]});
    const ir::ValueId high = Emit(ir::Op::kShl, ir::Type::kI32,
                                  {Emit(ir::Op::kZExt, ir::Type::kI32, {halves[1]}), Int(16)});
    return Emit(ir::Op::kOr, ir::Type::kI32, {low, high});
}

}  // namespace fornax::kernel::spirv

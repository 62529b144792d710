// Instructions that work component by component: arithmetic, comparisons, conversions, bits.
#include "compiler/kernel/spirv/arithmetic.h"

#include <algorithm>

namespace fornax::kernel::spirv {

using spv::Op;

namespace {

struct Simple {
    Op op;
    ir::Op ir;
    bool swapped = false;  // greater-than forms
};

constexpr Simple kSimple[] = {
    {Op::OpSNegate, ir::Op::kINeg},
    {Op::OpFNegate, ir::Op::kFNeg},
    {Op::OpIAdd, ir::Op::kIAdd},
    {Op::OpFAdd, ir::Op::kFAdd},
    {Op::OpISub, ir::Op::kISub},
    {Op::OpFSub, ir::Op::kFSub},
    {Op::OpIMul, ir::Op::kIMul},
    {Op::OpFMul, ir::Op::kFMul},
    {Op::OpUDiv, ir::Op::kUDiv},
    {Op::OpSDiv, ir::Op::kSDiv},
    {Op::OpFDiv, ir::Op::kFDiv},
    {Op::OpUMod, ir::Op::kURem},
    {Op::OpSRem, ir::Op::kSRem},
    {Op::OpSMod, ir::Op::kSMod},
    {Op::OpFRem, ir::Op::kFRem},
    {Op::OpFMod, ir::Op::kFMod},
    {Op::OpBitwiseOr, ir::Op::kOr},
    {Op::OpBitwiseXor, ir::Op::kXor},
    {Op::OpBitwiseAnd, ir::Op::kAnd},
    {Op::OpNot, ir::Op::kNot},
    {Op::OpBitReverse, ir::Op::kBitReverse},
    {Op::OpBitCount, ir::Op::kBitCount},
    {Op::OpLogicalEqual, ir::Op::kIEq},
    {Op::OpLogicalNotEqual, ir::Op::kINe},
    {Op::OpLogicalOr, ir::Op::kOr},
    {Op::OpLogicalAnd, ir::Op::kAnd},
    {Op::OpLogicalNot, ir::Op::kNot},
    {Op::OpIEqual, ir::Op::kIEq},
    {Op::OpINotEqual, ir::Op::kINe},
    {Op::OpUGreaterThan, ir::Op::kULt, true},
    {Op::OpSGreaterThan, ir::Op::kSLt, true},
    {Op::OpUGreaterThanEqual, ir::Op::kULe, true},
    {Op::OpSGreaterThanEqual, ir::Op::kSLe, true},
    {Op::OpULessThan, ir::Op::kULt},
    {Op::OpSLessThan, ir::Op::kSLt},
    {Op::OpULessThanEqual, ir::Op::kULe},
    {Op::OpSLessThanEqual, ir::Op::kSLe},
    {Op::OpFOrdEqual, ir::Op::kFOEq},
    {Op::OpFUnordEqual, ir::Op::kFUEq},
    {Op::OpFOrdNotEqual, ir::Op::kFONe},
    {Op::OpFUnordNotEqual, ir::Op::kFUNe},
    {Op::OpFOrdLessThan, ir::Op::kFOLt},
    {Op::OpFUnordLessThan, ir::Op::kFULt},
    {Op::OpFOrdGreaterThan, ir::Op::kFOLt, true},
    {Op::OpFUnordGreaterThan, ir::Op::kFULt, true},
    {Op::OpFOrdLessThanEqual, ir::Op::kFOLe},
    {Op::OpFUnordLessThanEqual, ir::Op::kFULe},
    {Op::OpFOrdGreaterThanEqual, ir::Op::kFOLe, true},
    {Op::OpFUnordGreaterThanEqual, ir::Op::kFULe, true},
    {Op::OpIsNan, ir::Op::kIsNan},
    {Op::OpIsInf, ir::Op::kIsInf},
    {Op::OpQuantizeToF16, ir::Op::kQuantizeF16},
};

}  // namespace

Status Arithmetic::Componentwise(const Inst& inst) {
    const auto* simple = std::ranges::find(kSimple, inst.op, &Simple::op);
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    const ir::Type scalar = types_.ScalarOf(*type);
    if (scalar == ir::Type::kVoid) {
        return Invalid(inst, "does not have a scalar or vector type");
    }
    std::vector<Tuple> operands;
    for (uint32_t id : inst.operands) {
        FORNAX_ASSIGN_OR_RETURN(Tuple operand, values_.UseTuple(inst, id));
        operands.push_back(std::move(operand));
    }
    if (simple->swapped) {
        std::swap(operands[0], operands[1]);
    }
    const uint8_t flags = FloatFlags(inst.result);
    Tuple result;
    for (size_t i = 0; i < type->scalars; ++i) {
        std::vector<ir::ValueId> scalars;
        for (const Tuple& operand : operands) {
            if (operand.size() != type->scalars) {
                return Invalid(inst, "has operands that do not fit its result type");
            }
            scalars.push_back(operand[i]);
        }
        if (inst.op != Op::OpBitCount) {
            result.push_back(EmitSpan(simple->ir, scalar, scalars, flags));
            continue;
        }
        // The result may have another width than the base.
        const ir::Type base = kernel_.type(scalars[0]);
        const ir::ValueId count = EmitSpan(simple->ir, base, scalars, flags);
        result.push_back(base == scalar ? count
                         : ir::BitWidth(base) > ir::BitWidth(scalar)
                             ? Emit(ir::Op::kTrunc, scalar, {count})
                             : Emit(ir::Op::kZExt, scalar, {count}));
    }
    return values_.Define(inst, std::move(result));
}

Status Arithmetic::Convert(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    FORNAX_ASSIGN_OR_RETURN(Tuple source, values_.UseTuple(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(const Type* source_type, values_.ValueType(inst, inst[0]));
    // "Conversions to or from ... BFloat16KHR ... first convert the source value to IEEE754
    // binary32" (SPV_KHR_bfloat16), and then from there.
    const bool from_bfloat = types_.IsBFloat16(*source_type);
    const bool to_bfloat = types_.IsBFloat16(*type);
    if (from_bfloat) {
        for (ir::ValueId& value : source) {
            value = FromBFloat16(value);
        }
    }
    const ir::Type to = to_bfloat ? ir::Type::kF32 : types_.ScalarOf(*type);
    if (to == ir::Type::kVoid || source.size() != type->scalars) {
        return Invalid(inst, "has operands that do not fit its result type");
    }
    const ir::Type from = kernel_.type(source[0]);
    ir::Op op;
    switch (inst.op) {
        case Op::OpConvertFToU:
            op = ir::Op::kFToU;
            break;
        case Op::OpConvertFToS:
            op = ir::Op::kFToS;
            break;
        case Op::OpConvertSToF:
            op = ir::Op::kSToF;
            break;
        case Op::OpConvertUToF:
            op = ir::Op::kUToF;
            break;
        case Op::OpFConvert:
            op = ir::Op::kFConvert;
            break;
        default:
            op = ir::BitWidth(to) < ir::BitWidth(from) ? ir::Op::kTrunc
                 : inst.op == Op::OpUConvert           ? ir::Op::kZExt
                                                       : ir::Op::kSExt;
            break;
    }
    // The decoration goes before the entry point's mode, which EmitSpan follows.
    const Decoration* rounding =
        module_.FindDecoration(inst.result, spv::Decoration::FPRoundingMode);
    Tuple result;
    for (ir::ValueId value : source) {
        ir::ValueId converted = value;
        if (from != to && rounding) {
            converted = builder_.Emit(op, to, {value});
            const auto mode = static_cast<spv::FPRoundingMode>(rounding->params[0]);
            if (op == ir::Op::kFConvert && mode == spv::FPRoundingMode::RTZ &&
                ir::BitWidth(to) < ir::BitWidth(from)) {
                converted = modes_.TowardsZero(value, converted);
            }
        } else if (from != to) {
            converted = Emit(op, to, {value});
        }
        result.push_back(to_bfloat ? ToBFloat16(converted) : converted);
    }
    return values_.Define(inst, std::move(result));
}

// Between vectors of different component counts, lower components hold lower bits (OpBitcast).
Status Arithmetic::Bitcast(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    FORNAX_ASSIGN_OR_RETURN(Tuple source, values_.UseTuple(inst, inst[0]));
    const ir::Type to = types_.ScalarOf(*type);
    const ir::Type from = kernel_.type(source[0]);
    const uint32_t to_bits = ir::BitWidth(to);
    const uint32_t from_bits = ir::BitWidth(from);
    if (to_bits < 8 || from_bits < 8 || to_bits * type->scalars != from_bits * source.size()) {
        return Invalid(inst, "changes the number of bits");
    }
    const ir::Type to_int = ir::IntegerType(to_bits);
    const ir::Type from_int = ir::IntegerType(from_bits);
    auto cast = [&](ir::ValueId value, ir::Type wanted) {
        return kernel_.type(value) == wanted ? value : Emit(ir::Op::kBitcast, wanted, {value});
    };
    Tuple result;
    if (to_bits == from_bits) {
        for (ir::ValueId value : source) {
            result.push_back(cast(value, to));
        }
    } else if (to_bits < from_bits) {
        for (ir::ValueId value : source) {
            ir::ValueId bits = cast(value, from_int);
            for (uint32_t at = 0; at < from_bits; at += to_bits) {
                ir::ValueId part =
                    Emit(ir::Op::kLShr, from_int, {bits, builder_.Const(from_int, at)});
                result.push_back(cast(Emit(ir::Op::kTrunc, to_int, {part}), to));
            }
        }
    } else {
        for (size_t i = 0; i < source.size(); i += to_bits / from_bits) {
            ir::ValueId bits;
            for (uint32_t at = 0; at < to_bits; at += from_bits) {
                ir::ValueId part =
                    Emit(ir::Op::kZExt, to_int, {cast(source[i + at / from_bits], from_int)});
                part = Emit(ir::Op::kShl, to_int, {part, builder_.Const(to_int, at)});
                bits = bits.valid() ? Emit(ir::Op::kOr, to_int, {bits, part}) : part;
            }
            result.push_back(cast(bits, to));
        }
    }
    return values_.Define(inst, std::move(result));
}

Status Arithmetic::Select(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Tuple condition, values_.UseTuple(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Tuple first, values_.UseParts(inst, inst[1]));
    FORNAX_ASSIGN_OR_RETURN(Tuple second, values_.UseParts(inst, inst[2]));
    const size_t count = first.size();
    if (second.size() != count || (condition.size() != 1 && condition.size() != count)) {
        return Invalid(inst, "has operands that do not fit its result type");
    }
    Tuple result;
    for (size_t i = 0; i < count; ++i) {
        const ir::ValueId choose = condition[condition.size() == 1 ? 0 : i];
        const ir::ValueId a = first[i];
        const ir::ValueId b = second[i];
        if (kernel_.type(choose) != ir::Type::kBool || kernel_.type(a) != kernel_.type(b)) {
            return Invalid(inst, "has operands that do not fit its result type");
        }
        result.push_back(Emit(ir::Op::kSelect, kernel_.type(a), {choose, a, b}));
    }
    return values_.Define(inst, std::move(result));
}

Status Arithmetic::AnyAll(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Tuple source, values_.UseTuple(inst, inst[0]));
    const ir::Op op = inst.op == Op::OpAny ? ir::Op::kOr : ir::Op::kAnd;
    ir::ValueId result = source[0];
    for (size_t i = 1; i < source.size(); ++i) {
        result = Emit(op, ir::Type::kBool, {result, source[i]});
    }
    return values_.Define(inst, {result});
}

// A structure of two values: all first results, then all second ones.
Status Arithmetic::TwoResults(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Tuple a, values_.UseTuple(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Tuple b, values_.UseTuple(inst, inst[1]));
    ir::Op op = ir::Op::kUAddCarry;
    if (inst.op == Op::OpISubBorrow) {
        op = ir::Op::kUSubBorrow;
    } else if (inst.op == Op::OpUMulExtended) {
        op = ir::Op::kUMulExtended;
    } else if (inst.op == Op::OpSMulExtended) {
        op = ir::Op::kSMulExtended;
    }
    if (a.size() != b.size()) {
        return Invalid(inst, "has operands of different types");
    }
    Tuple first;
    Tuple second;
    for (size_t i = 0; i < a.size(); ++i) {
        const ir::Type types[] = {kernel_.type(a[i]), kernel_.type(a[i])};
        ir::ValueId operands[] = {a[i], b[i]};
        ir::InstId id = builder_.Append(op, operands, types);
        first.push_back(kernel_.inst(id).results[0]);
        second.push_back(kernel_.inst(id).results[1]);
    }
    first.insert(first.end(), second.begin(), second.end());
    return values_.Define(inst, std::move(first));
}

Status Arithmetic::VectorTimesScalar(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Tuple vector, values_.UseTuple(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(ir::ValueId scalar, values_.UseScalar(inst, inst[1]));
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    if (types_.IsBFloat16(*type)) {
        return Unsupported(inst, "multiplies bfloat16, which has no arithmetic");
    }
    // Those of cooperative matrices may be integers.
    const ir::Op op = ir::IsFloat(kernel_.type(scalar)) ? ir::Op::kFMul : ir::Op::kIMul;
    const uint8_t flags = FloatFlags(inst.result);
    for (ir::ValueId& component : vector) {
        component = Emit(op, kernel_.type(component), {component, scalar}, flags);
    }
    return values_.Define(inst, std::move(vector));
}

Status Arithmetic::Shift(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Tuple base, values_.UseTuple(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Tuple amount, values_.UseTuple(inst, inst[1]));
    if (base.size() != amount.size()) {
        return Invalid(inst, "has operands that do not fit its result type");
    }
    const ir::Op op = inst.op == Op::OpShiftLeftLogical    ? ir::Op::kShl
                      : inst.op == Op::OpShiftRightLogical ? ir::Op::kLShr
                                                           : ir::Op::kAShr;
    for (size_t i = 0; i < base.size(); ++i) {
        base[i] = Emit(op, kernel_.type(base[i]), {base[i], amount[i]});
    }
    return values_.Define(inst, std::move(base));
}

Status Arithmetic::BitField(const Inst& inst) {
    const bool insert = inst.op == Op::OpBitFieldInsert;
    FORNAX_ASSIGN_OR_RETURN(Tuple base, values_.UseTuple(inst, inst[0]));
    const size_t rest = insert ? 2 : 1;
    FORNAX_ASSIGN_OR_RETURN(ir::ValueId offset, values_.UseScalar(inst, inst[rest]));
    FORNAX_ASSIGN_OR_RETURN(ir::ValueId count, values_.UseScalar(inst, inst[rest + 1]));
    offset = ToI32(offset, false);
    count = ToI32(count, false);
    Tuple inserted;
    if (insert) {
        FORNAX_ASSIGN_OR_RETURN(inserted, values_.UseTuple(inst, inst[1]));
        if (inserted.size() != base.size()) {
            return Invalid(inst, "has operands that do not fit its result type");
        }
    }
    for (size_t i = 0; i < base.size(); ++i) {
        const ir::Type type = kernel_.type(base[i]);
        if (insert) {
            base[i] = Emit(ir::Op::kBitFieldInsert, type, {base[i], inserted[i], offset, count});
        } else if (inst.op == Op::OpBitFieldSExtract) {
            base[i] = Emit(ir::Op::kBitFieldSExtract, type, {base[i], offset, count});
        } else {
            base[i] = Emit(ir::Op::kBitFieldUExtract, type, {base[i], offset, count});
        }
    }
    return values_.Define(inst, std::move(base));
}

}  // namespace fornax::kernel::spirv

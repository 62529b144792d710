// Small extensions of SPIR-V, each a few lines: hints to the optimiser, clocks, fused products,
// replicated composites, bfloat16 as a type to store, and what only fragment shaders have.
#include "compiler/kernel/spirv/translator.h"

namespace fornax::kernel::spirv {

// SPV_KHR_expect_assume: the value, whatever is expected of it. A wrong expectation changes no
// result.
Status Translator::Expect(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Tuple value, UseTuple(inst, inst[0]));
    return Define(inst, std::move(value));
}

// SPV_KHR_shader_clock: one clock serves subgroups and the device. The result is a 64-bit integer,
// or its low and its high word.
Status Translator::ReadClock(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    FORNAX_ASSIGN_OR_RETURN(uint64_t scope, constants_.Integer(inst, inst[0]));
    if (scope != static_cast<uint64_t>(spv::Scope::Subgroup) &&
        scope != static_cast<uint64_t>(spv::Scope::Device)) {
        return Invalid(inst, "reads the clock of another scope than subgroup and device");
    }
    const bool whole = type->kind == Type::Kind::kScalar && type->scalar == ir::Type::kI64;
    const bool words = type->kind == Type::Kind::kVector && type->count == 2 &&
                       types_.ScalarOf(*type) == ir::Type::kI32;
    if (!whole && !words) {
        return Invalid(inst, "gives neither an integer of 64 bits nor two of 32");
    }
    const ir::ValueId clock = Emit(ir::Op::kReadClock, ir::Type::kI64, {});
    if (whole) {
        return Define(inst, {clock});
    }
    const ir::ValueId high =
        Emit(ir::Op::kLShr, ir::Type::kI64, {clock, builder_.Const(ir::Type::kI64, 32)});
    return Define(inst, {Emit(ir::Op::kTrunc, ir::Type::kI32, {clock}),
                         Emit(ir::Op::kTrunc, ir::Type::kI32, {high})});
}

// SPV_KHR_fma: rounded once, unlike GLSL.std.450's Fma, which may round the product.
Status Translator::Fma(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Tuple a, UseTuple(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Tuple b, UseTuple(inst, inst[1]));
    FORNAX_ASSIGN_OR_RETURN(Tuple c, UseTuple(inst, inst[2]));
    if (a.size() != b.size() || a.size() != c.size()) {
        return Invalid(inst, "has operands that do not fit its result type");
    }
    for (size_t i = 0; i < a.size(); ++i) {
        const ir::Type type = kernel_.type(a[i]);
        if (!ir::IsFloat(type) || kernel_.type(b[i]) != type || kernel_.type(c[i]) != type) {
            return Invalid(inst, "has operands that are not floats of one type");
        }
        a[i] = modes_.Fused(a[i], b[i], c[i]);
    }
    return Define(inst, std::move(a));
}

// SPV_EXT_replicated_composites: every constituent is the one that is named.
Status Translator::CompositeReplicate(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *type));
    FORNAX_ASSIGN_OR_RETURN(Tuple part, UseTuple(inst, inst[0]));
    if (part.empty() || type->scalars % part.size() != 0) {
        return Invalid(inst, "replicates a value that is no constituent of its type");
    }
    Tuple tuple;
    while (tuple.size() < type->scalars) {
        tuple.insert(tuple.end(), part.begin(), part.end());
    }
    return Define(inst, std::move(tuple));
}

// "Only valid in the Fragment Execution Model" (OpKill, OpTerminateInvocation,
// OpDemoteToHelperInvocation, ...).
Status Translator::FragmentOnly(const Inst& inst) {
    return Unsupported(inst, "is for fragment shaders only, and this is a compute shader");
}

// SPV_KHR_bfloat16: the upper half of a binary32.
ir::ValueId Translator::FromBFloat16(ir::ValueId bits) {
    const ir::ValueId wide = Emit(ir::Op::kZExt, ir::Type::kI32, {bits});
    const ir::ValueId shifted = Emit(ir::Op::kShl, ir::Type::kI32, {wide, Int(16)});
    return Emit(ir::Op::kBitcast, ir::Type::kF32, {shifted});
}

// Rounds to nearest even; a NaN stays one, also if only its lower half told.
ir::ValueId Translator::ToBFloat16(ir::ValueId value) {
    using ir::Op;
    using ir::Type;
    const ir::ValueId bits = Emit(Op::kBitcast, Type::kI32, {value});
    const ir::ValueId upper = Emit(Op::kLShr, Type::kI32, {bits, Int(16)});
    const ir::ValueId odd = Emit(Op::kAnd, Type::kI32, {upper, Int(1)});
    const ir::ValueId half = Emit(Op::kIAdd, Type::kI32, {odd, Int(0x7fff)});
    const ir::ValueId sum = Emit(Op::kIAdd, Type::kI32, {bits, half});
    const ir::ValueId rounded = Emit(Op::kLShr, Type::kI32, {sum, Int(16)});
    const ir::ValueId quiet = Emit(Op::kOr, Type::kI32, {upper, Int(0x40)});
    const ir::ValueId is_nan = Emit(Op::kIsNan, Type::kBool, {value});
    const ir::ValueId chosen = Emit(Op::kSelect, Type::kI32, {is_nan, quiet, rounded});
    return Emit(Op::kTrunc, Type::kI16, {chosen});
}

}  // namespace fornax::kernel::spirv

// Small extensions of SPIR-V, each a few lines: hints to the optimiser, clocks, fused products,
// replicated composites, what only fragment shaders have; undefined values.
#include "compiler/kernel/spirv/extensions.h"

namespace fornax::kernel::spirv {

// SPV_KHR_expect_assume: the value, whatever is expected of it. A wrong expectation changes no
// result.
Status Extensions::Expect(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Tuple value, values_.UseTuple(inst, inst[0]));
    return values_.Define(inst, std::move(value));
}

// SPV_KHR_shader_clock: one clock serves subgroups and the device. The result is a 64-bit integer,
// or its low and its high word.
Status Extensions::ReadClock(const Inst& inst) {
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
        return values_.Define(inst, {clock});
    }
    const ir::ValueId high =
        Emit(ir::Op::kLShr, ir::Type::kI64, {clock, builder_.Const(ir::Type::kI64, 32)});
    return values_.Define(inst, {Emit(ir::Op::kTrunc, ir::Type::kI32, {clock}),
                                 Emit(ir::Op::kTrunc, ir::Type::kI32, {high})});
}

// SPV_KHR_fma: rounded once, unlike GLSL.std.450's Fma, which may round the product.
Status Extensions::Fma(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Tuple a, values_.UseTuple(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Tuple b, values_.UseTuple(inst, inst[1]));
    FORNAX_ASSIGN_OR_RETURN(Tuple c, values_.UseTuple(inst, inst[2]));
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
    return values_.Define(inst, std::move(a));
}

// SPV_EXT_replicated_composites: every constituent is the one that is named.
Status Extensions::CompositeReplicate(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *type));
    FORNAX_ASSIGN_OR_RETURN(Tuple part, values_.UseTuple(inst, inst[0]));
    if (part.empty() || type->scalars % part.size() != 0) {
        return Invalid(inst, "replicates a value that is no constituent of its type");
    }
    Tuple tuple;
    while (tuple.size() < type->scalars) {
        tuple.insert(tuple.end(), part.begin(), part.end());
    }
    return values_.Define(inst, std::move(tuple));
}

// "Only valid in the Fragment Execution Model" (OpKill, OpTerminateInvocation,
// OpDemoteToHelperInvocation, ...).
Status Extensions::FragmentOnly(const Inst& inst) {
    return Unsupported(inst, "is for fragment shaders only, and this is a compute shader");
}

Status Extensions::Undefined(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    if (type->scalars == 0 && !type->empty) {
        return OkStatus();  // an image or runtime array: an error only where it is used
    }
    FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *type));
    if (code_.frame && large_.IsLarge(*type)) {
        FORNAX_ASSIGN_OR_RETURN(Pointer place, large_.NewLargePlace(inst, *type));
        return values_.DefineLarge(inst, std::move(place));
    }
    std::vector<ir::Type> scalar_types;
    types_.Flatten(*type, scalar_types);
    Tuple tuple;
    for (ir::Type scalar : scalar_types) {
        tuple.push_back(Emit(ir::Op::kUndef, scalar, {}));
    }
    return values_.Define(inst, std::move(tuple));
}

}  // namespace fornax::kernel::spirv

// Small extensions of SPIR-V, each a few lines: hints to the optimiser, replicated composites, and
// what only fragment shaders have.
#include "compiler/kernel/spirv/translator.h"

namespace fornax::kernel::spirv {

// SPV_KHR_expect_assume: the value, whatever is expected of it. A wrong expectation changes no
// result.
Status Translator::Expect(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Tuple value, UseTuple(inst, inst[0]));
    return Define(inst, std::move(value));
}

// SPV_EXT_replicated_composites: every constituent is the one that is named.
Status Translator::CompositeReplicate(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *type));
    FORNAX_ASSIGN_OR_RETURN(Tuple part, UseTuple(inst, inst[0]));
    if (part.empty() || type->scalars % part.size() != 0)
        return Invalid(inst, "replicates a value that is no constituent of its type");
    Tuple tuple;
    while (tuple.size() < type->scalars)
        tuple.insert(tuple.end(), part.begin(), part.end());
    return Define(inst, std::move(tuple));
}

// "Only valid in the Fragment Execution Model" (OpKill, OpTerminateInvocation,
// OpDemoteToHelperInvocation, ...).
Status Translator::FragmentOnly(const Inst& inst) {
    return Unsupported(inst, "is for fragment shaders only, and this is a compute shader");
}

}  // namespace fornax::kernel::spirv

// Derivatives in compute shaders (SPV_KHR_compute_shader_derivatives): differences between the
// invocations of a quad, which are four neighbouring lanes of a subgroup.
//
// In linear groups these are four consecutive local invocation indices, as lanes are anyway. In
// groups of quads they are two by two invocations ("Quad", Vulkan, Shaders): the kernel then runs
// as if its workgroup were twice as wide and half as high, so that the four of a quad are
// neighbours in x (execution_modes.cpp), and the ids that the shader sees are computed from the
// place there (invocation_code.cpp). Operations between the lanes of a quad (subgroups.cpp) see the
// same quads without knowing of this.
#include "compiler/kernel/spirv/derivatives.h"

namespace fornax::kernel::spirv {

using ir::ValueId;
using spv::Op;

// "Derivative Operations": the fine ones are differences between the two invocations that are on
// the same row (x) or column (y) as the invocation itself, the coarse ones those of the first.
ValueId Derivatives::Difference(ValueId value, bool along_y, bool coarse) {
    code_.sees_quads = true;
    const ir::Type i32 = ir::Type::kI32;
    const uint32_t step = along_y ? 2 : 1;
    const ValueId first =
        Emit(ir::Op::kAnd, i32, {invocation_.SubgroupLane(), Int(coarse ? ~uint32_t{3} : ~step)});
    const ValueId second = Emit(ir::Op::kOr, i32, {first, Int(step)});
    auto of_lane = [&](ValueId lane) {
        return Emit(ir::Op::kSubgroupShuffle, kernel_.type(value), {value, lane});
    };
    return Emit(ir::Op::kFSub, kernel_.type(value), {of_lane(second), of_lane(first)});
}

Status Derivatives::NeedsDerivatives(const Inst& inst) const {
    if (code_.derivative_group != DerivativeGroup::kNone) {
        return OkStatus();
    }
    return Unsupported(inst,
                       "takes derivatives, and the entry point has neither of the execution modes "
                       "DerivativeGroupQuadsKHR and DerivativeGroupLinearKHR");
}

Status Derivatives::Derivative(const Inst& inst) {
    FORNAX_RETURN_IF_ERROR(NeedsDerivatives(inst));
    FORNAX_ASSIGN_OR_RETURN(Tuple values, values_.UseTuple(inst, inst[0]));
    const bool coarse =
        inst.op == Op::OpDPdxCoarse || inst.op == Op::OpDPdyCoarse || inst.op == Op::OpFwidthCoarse;
    const bool along_y =
        inst.op == Op::OpDPdy || inst.op == Op::OpDPdyFine || inst.op == Op::OpDPdyCoarse;
    const bool both =
        inst.op == Op::OpFwidth || inst.op == Op::OpFwidthFine || inst.op == Op::OpFwidthCoarse;
    for (ValueId& value : values) {
        const ir::Type type = kernel_.type(value);
        if (!ir::IsFloat(type)) {
            return Invalid(inst, "takes the derivative of what is no float");
        }
        if (!both) {
            value = Difference(value, along_y, coarse);
            continue;
        }
        const ValueId dx = Emit(ir::Op::kFAbs, type, {Difference(value, false, coarse)});
        const ValueId dy = Emit(ir::Op::kFAbs, type, {Difference(value, true, coarse)});
        value = Emit(ir::Op::kFAdd, type, {dx, dy});
    }
    return values_.Define(inst, std::move(values));
}

}  // namespace fornax::kernel::spirv

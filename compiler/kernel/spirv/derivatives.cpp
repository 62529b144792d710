// Derivatives in compute shaders (SPV_KHR_compute_shader_derivatives): differences between the
// invocations of a quad, which are four neighbouring lanes of a subgroup.
//
// In linear groups these are four consecutive local invocation indices, as lanes are anyway. In
// groups of quads they are two by two invocations ("Quad", Vulkan, Shaders): the kernel then runs
// as if its workgroup were twice as wide and half as high, so that the four of a quad are
// neighbours in x, and the ids that the shader sees are computed from the place there. Operations
// between the lanes of a quad (subgroups.cpp) see the same quads without knowing of this.
#include "compiler/kernel/spirv/translator.h"

namespace fornax::kernel::spirv {

using ir::ValueId;
using spv::Op;

Status Translator::SetDerivativeGroup(const Inst& inst, DerivativeGroup group) {
    if (derivative_group_ != DerivativeGroup::kNone && derivative_group_ != group) {
        return Invalid(inst, "asks for a second kind of derivative group");
    }
    derivative_group_ = group;
    return OkStatus();
}

// VUID-StandaloneSpirv-DerivativeGroupQuadsKHR-10151 and DerivativeGroupLinearKHR-10152.
Status Translator::ArrangeWorkgroup(const Inst& entry_point) {
    kernel_.workgroup_size = workgroup_size_;
    const auto [x, y, z] = workgroup_size_;
    const std::string size =
        std::to_string(x) + " x " + std::to_string(y) + " x " + std::to_string(z);
    if (derivative_group_ == DerivativeGroup::kLinear && x * y * z % 4 != 0) {
        return Invalid(entry_point, "has linear derivative groups and a workgroup of " + size +
                                        " invocations, which is no multiple of 4");
    }
    if (derivative_group_ == DerivativeGroup::kQuads) {
        if (x % 2 != 0 || y % 2 != 0) {
            return Invalid(entry_point, "has derivative groups of quads and a workgroup of " +
                                            size + " invocations; x and y must be multiples of 2");
        }
        kernel_.workgroup_size = {2 * x, y / 2, z};
    }
    return OkStatus();
}

Tuple Translator::LocalInvocationId() {
    const ir::Type i32 = ir::Type::kI32;
    Tuple at;
    for (auto id : {ir::BuiltinId::kLocalIdX, ir::BuiltinId::kLocalIdY, ir::BuiltinId::kLocalIdZ}) {
        at.push_back(Emit(ir::Op::kBuiltin, i32, {}, 0, static_cast<uint64_t>(id)));
    }
    if (derivative_group_ != DerivativeGroup::kQuads) {
        return at;
    }
    // The lowest two bits of the place are the index in the quad: right, then down.
    auto with_bit = [&](ValueId quad, ValueId bit) {
        return Emit(ir::Op::kIAdd, i32, {Emit(ir::Op::kShl, i32, {quad, Int(1)}), bit});
    };
    const ValueId right = Emit(ir::Op::kAnd, i32, {at[0], Int(1)});
    const ValueId down =
        Emit(ir::Op::kAnd, i32, {Emit(ir::Op::kLShr, i32, {at[0], Int(1)}), Int(1)});
    return {with_bit(Emit(ir::Op::kLShr, i32, {at[0], Int(2)}), right), with_bit(at[1], down),
            at[2]};
}

ValueId Translator::LocalInvocationIndex() {
    const ir::Type i32 = ir::Type::kI32;
    if (derivative_group_ != DerivativeGroup::kQuads) {
        return Emit(ir::Op::kBuiltin, i32, {}, 0,
                    static_cast<uint64_t>(ir::BuiltinId::kLocalIndex));
    }
    const Tuple id = LocalInvocationId();
    ValueId index = id[2];
    for (size_t axis : {1, 0}) {
        index = Emit(ir::Op::kIMul, i32, {index, Int(workgroup_size_[axis])});
        index = Emit(ir::Op::kIAdd, i32, {index, id[axis]});
    }
    return index;
}

// "Derivative Operations": the fine ones are differences between the two invocations that are on
// the same row (x) or column (y) as the invocation itself, the coarse ones those of the first.
ValueId Translator::Difference(ValueId value, bool along_y, bool coarse) {
    sees_quads_ = true;
    const ir::Type i32 = ir::Type::kI32;
    const uint32_t step = along_y ? 2 : 1;
    const ValueId first =
        Emit(ir::Op::kAnd, i32, {SubgroupLane(), Int(coarse ? ~uint32_t{3} : ~step)});
    const ValueId second = Emit(ir::Op::kOr, i32, {first, Int(step)});
    auto of_lane = [&](ValueId lane) {
        return Emit(ir::Op::kSubgroupShuffle, kernel_.type(value), {value, lane});
    };
    return Emit(ir::Op::kFSub, kernel_.type(value), {of_lane(second), of_lane(first)});
}

Status Translator::NeedsDerivatives(const Inst& inst) const {
    if (derivative_group_ != DerivativeGroup::kNone) {
        return OkStatus();
    }
    return Unsupported(inst,
                       "takes derivatives, and the entry point has neither of the execution modes "
                       "DerivativeGroupQuadsKHR and DerivativeGroupLinearKHR");
}

Status Translator::Derivative(const Inst& inst) {
    FORNAX_RETURN_IF_ERROR(NeedsDerivatives(inst));
    FORNAX_ASSIGN_OR_RETURN(Tuple values, UseTuple(inst, inst[0]));
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
    return Define(inst, std::move(values));
}

}  // namespace fornax::kernel::spirv

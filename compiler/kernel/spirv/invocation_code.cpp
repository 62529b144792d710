// Built-in inputs and sets of lanes. Where derivative groups are quads, the kernel's workgroup is
// another than the shader's (derivatives.cpp), and local ids are computed.
#include "compiler/kernel/spirv/invocation_code.h"

namespace fornax::kernel::spirv {

using ir::ValueId;

namespace {

// What tells an invocation of its subgroup.
bool IsOfSubgroup(spv::BuiltIn builtin) {
    switch (builtin) {
        case spv::BuiltIn::NumWorkgroups:
        case spv::BuiltIn::WorkgroupId:
        case spv::BuiltIn::LocalInvocationId:
        case spv::BuiltIn::WorkgroupSize:
        case spv::BuiltIn::GlobalInvocationId:
        case spv::BuiltIn::LocalInvocationIndex:
        case spv::BuiltIn::DeviceIndex:
            return false;
        default:
            return true;
    }
}

}  // namespace

Tuple InvocationCode::LocalInvocationId() {
    const ir::Type i32 = ir::Type::kI32;
    Tuple at;
    for (auto id : {ir::BuiltinId::kLocalIdX, ir::BuiltinId::kLocalIdY, ir::BuiltinId::kLocalIdZ}) {
        at.push_back(Emit(ir::Op::kBuiltin, i32, {}, 0, static_cast<uint64_t>(id)));
    }
    if (code_.derivative_group != DerivativeGroup::kQuads) {
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

ValueId InvocationCode::LocalInvocationIndex() {
    const ir::Type i32 = ir::Type::kI32;
    if (code_.derivative_group != DerivativeGroup::kQuads) {
        return Emit(ir::Op::kBuiltin, i32, {}, 0,
                    static_cast<uint64_t>(ir::BuiltinId::kLocalIndex));
    }
    const Tuple id = LocalInvocationId();
    ValueId index = id[2];
    for (size_t axis : {1, 0}) {
        index = Emit(ir::Op::kIMul, i32, {index, Int(code_.workgroup_size[axis])});
        index = Emit(ir::Op::kIAdd, i32, {index, id[axis]});
    }
    return index;
}

Result<Tuple> InvocationCode::LoadBuiltin(const Inst& inst, const Pointer& pointer) {
    using ir::BuiltinId;
    const ir::Type i32 = ir::Type::kI32;
    auto one = [&](BuiltinId id) {
        return Emit(ir::Op::kBuiltin, i32, {}, 0, static_cast<uint64_t>(id));
    };
    auto three = [&](BuiltinId first) {
        Tuple tuple;
        for (int i = 0; i < 3; ++i) {
            tuple.push_back(one(static_cast<BuiltinId>(static_cast<int>(first) + i)));
        }
        return tuple;
    };
    Tuple tuple;
    code_.sees_subgroups |= IsOfSubgroup(pointer.builtin);
    switch (pointer.builtin) {
        case spv::BuiltIn::NumWorkgroups:
            tuple = three(BuiltinId::kNumWorkgroupsX);
            break;
        case spv::BuiltIn::WorkgroupId:
            tuple = three(BuiltinId::kWorkgroupIdX);
            break;
        case spv::BuiltIn::LocalInvocationId:
            tuple = LocalInvocationId();
            break;
        case spv::BuiltIn::WorkgroupSize:
            for (uint32_t size : code_.workgroup_size) {
                tuple.push_back(Int(size));
            }
            break;
        case spv::BuiltIn::GlobalInvocationId: {
            Tuple group = three(BuiltinId::kWorkgroupIdX);
            Tuple local = LocalInvocationId();
            for (int i = 0; i < 3; ++i) {
                ir::ValueId start =
                    Emit(ir::Op::kIMul, i32, {group[i], Int(code_.workgroup_size[i])});
                tuple.push_back(Emit(ir::Op::kIAdd, i32, {start, local[i]}));
            }
            break;
        }
        case spv::BuiltIn::LocalInvocationIndex:
            tuple = {LocalInvocationIndex()};
            break;
        case spv::BuiltIn::SubgroupId:
            tuple = {one(BuiltinId::kSubgroupId)};
            break;
        case spv::BuiltIn::SubgroupLocalInvocationId:
            tuple = {one(BuiltinId::kSubgroupLane)};
            break;
        case spv::BuiltIn::NumSubgroups:
            tuple = {one(BuiltinId::kNumSubgroups)};
            break;
        case spv::BuiltIn::DeviceIndex:
            tuple = {Int(0)};  // Vulkan 36.7: every device group has one device
            break;
        case spv::BuiltIn::SubgroupEqMask:
        case spv::BuiltIn::SubgroupGeMask:
        case spv::BuiltIn::SubgroupGtMask:
        case spv::BuiltIn::SubgroupLeMask:
        case spv::BuiltIn::SubgroupLtMask:
            tuple = LaneSetToVector(LanesAround(pointer.builtin));
            break;
        default:
            tuple = {one(BuiltinId::kSubgroupSize)};
            break;
    }
    if (!pointer.component.valid()) {
        return tuple;
    }
    if (tuple.size() == 1) {
        return Invalid(inst, "takes a component of a scalar");
    }
    return Tuple{SelectComponent(tuple, pointer.component)};
}

ir::ValueId InvocationCode::SubgroupLane() {
    return Emit(ir::Op::kBuiltin, ir::Type::kI32, {}, 0,
                static_cast<uint64_t>(ir::BuiltinId::kSubgroupLane));
}

// Sets of lanes are computed with in 32 bits where these suffice.
ir::Type InvocationCode::LaneSetType() const {
    return kernel_.subgroup_size > 32 ? ir::Type::kI64 : ir::Type::kI32;
}

ir::ValueId InvocationCode::AllLanes() {
    return builder_.Const(LaneSetType(), ~uint64_t{0} >> (64 - kernel_.subgroup_size));
}

Tuple InvocationCode::LaneSetToVector(ir::ValueId set) {
    const ir::Type i32 = ir::Type::kI32;
    if (kernel_.type(set) == i32) {
        return {set, Int(0), Int(0), Int(0)};
    }
    ir::ValueId high = Emit(ir::Op::kLShr, ir::Type::kI64, {set, builder_.Const(i32, 32)});
    return {Emit(ir::Op::kTrunc, i32, {set}), Emit(ir::Op::kTrunc, i32, {high}), Int(0), Int(0)};
}

// The lanes before, up to, after, ... the lane itself.
ir::ValueId InvocationCode::LanesAround(spv::BuiltIn which) {
    const ir::Type type = LaneSetType();
    ir::ValueId lane = SubgroupLane();
    ir::ValueId self = Emit(ir::Op::kShl, type, {builder_.Const(type, 1), lane});
    if (which == spv::BuiltIn::SubgroupEqMask) {
        return self;
    }
    ir::ValueId before = Emit(ir::Op::kISub, type, {self, builder_.Const(type, 1)});
    if (which == spv::BuiltIn::SubgroupLtMask) {
        return before;
    }
    if (which == spv::BuiltIn::SubgroupGeMask) {
        return Emit(ir::Op::kXor, type, {before, AllLanes()});
    }
    ir::ValueId up_to = Emit(ir::Op::kOr, type, {before, self});
    if (which == spv::BuiltIn::SubgroupLeMask) {
        return up_to;
    }
    return Emit(ir::Op::kXor, type, {up_to, AllLanes()});
}

}  // namespace fornax::kernel::spirv

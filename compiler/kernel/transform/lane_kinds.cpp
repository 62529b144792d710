#include "compiler/kernel/transform/lane_kinds.h"

#include <vector>

namespace fornax::kernel {

using namespace ir;

Lanes LaneKinds::Of(ValueId value) {
    if (value.index >= kinds_.size()) {
        return Lanes::kApart;
    }
    if (same_as_[value.index].valid()) {
        return Of(same_as_[value.index]);
    }
    if (kinds_[value.index] == Lanes::kUnknown) {
        kinds_[value.index] = Lanes::kApart;  // until it is known, in a loop
        kinds_[value.index] = Find(value);
    }
    return kinds_[value.index];
}

Lanes LaneKinds::Find(ValueId value) {
    const Instruction* inst = kernel_.Definition(value);
    if (!inst) {
        return OfParameter(value);
    }
    if (inst->op == Op::kBuiltin) {
        return OfBuiltin(static_cast<BuiltinId>(inst->imm));
    }
    const bool loads = HasProperty(inst->op, kReadsMemory) &&
                       !HasProperty(inst->op, kWritesMemory) && inst->op != Op::kLoadLocal;
    if (!loads && !HasProperty(inst->op, kPure)) {
        return Lanes::kApart;
    }
    bool all_same = true;
    for (ValueId operand : std::vector(inst->operands)) {
        const Lanes kind = Of(operand);
        if (kind == Lanes::kApart) {
            return kind;
        }
        all_same &= kind == Lanes::kSame;
    }
    if (all_same) {
        return Lanes::kSame;
    }
    switch (inst->op) {
        case Op::kIAdd:
        case Op::kISub:
        case Op::kZExt:
        case Op::kSExt:
        case Op::kTrunc:
            return Lanes::kNear;
        case Op::kIMul:
        case Op::kShl:
        case Op::kLShr:
        case Op::kAnd:
        case Op::kOr:
        case Op::kXor:
        case Op::kUDiv:
        case Op::kURem:
            return kernel_.IsConst(inst->operands[1]) ? Lanes::kNear : Lanes::kApart;
        case Op::kSelect:
            return Of(inst->operands[0]) == Lanes::kSame ? Lanes::kNear : Lanes::kApart;
        default:
            return Lanes::kApart;
    }
}

// As what the loop begins with.
Lanes LaneKinds::OfParameter(ValueId value) {
    const Value& param = kernel_.value(value);
    const Instruction& loop = kernel_.inst(kernel_.block(param.block).parent);
    if (loop.op != Op::kLoop || loop.blocks[0] != param.block) {
        return Lanes::kApart;
    }
    return Of(loop.operands[param.index]);
}

Lanes LaneKinds::OfBuiltin(BuiltinId builtin) const {
    const auto& size = kernel_.workgroup_size;
    auto local = [&](uint32_t count) { return count == 1 ? Lanes::kSame : Lanes::kNear; };
    switch (builtin) {
        case BuiltinId::kLocalIdX:
            return local(size[0]);
        case BuiltinId::kLocalIdY:
            return local(size[1]);
        case BuiltinId::kLocalIdZ:
            return local(size[2]);
        case BuiltinId::kLocalIndex:
        case BuiltinId::kSubgroupLane:
            return Lanes::kNear;
        default:
            return Lanes::kSame;
    }
}

}  // namespace fornax::kernel

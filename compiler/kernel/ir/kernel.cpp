#include "compiler/kernel/ir/kernel.h"

#include <bit>

namespace fornax::kernel::ir {

const Instruction* Kernel::Definition(ValueId id) const {
    const Value& v = value(id);
    return v.inst.valid() ? &inst(v.inst) : nullptr;
}

bool Kernel::IsConst(ValueId id, uint64_t* bits) const {
    const Instruction* definition = Definition(id);
    if (!definition || definition->op != Op::kConst) {
        return false;
    }
    if (bits) {
        *bits = definition->imm;
    }
    return true;
}

BlockId Kernel::NewBlock(InstId parent) {
    BlockId id{static_cast<uint32_t>(blocks_.size())};
    blocks_.emplace_back().parent = parent;
    return id;
}

ValueId Kernel::AddParam(BlockId block_id, Type type) {
    ValueId id{static_cast<uint32_t>(values_.size())};
    auto& params = block(block_id).params;
    values_.push_back({type, {}, block_id, static_cast<uint32_t>(params.size())});
    params.push_back(id);
    return id;
}

InstId Kernel::NewInst(Op op,
                       std::span<const ValueId> operands,
                       std::span<const Type> result_types) {
    InstId id{static_cast<uint32_t>(insts_.size())};
    Instruction& instruction = insts_.emplace_back();
    instruction.op = op;
    instruction.operands.assign(operands.begin(), operands.end());
    for (Type type : result_types) {
        AddResult(id, type);
    }
    return id;
}

ValueId Kernel::AddResult(InstId inst_id, Type type) {
    ValueId id{static_cast<uint32_t>(values_.size())};
    auto& results = inst(inst_id).results;
    values_.push_back({type, inst_id, {}, static_cast<uint32_t>(results.size())});
    results.push_back(id);
    return id;
}

void Kernel::ReplaceUses(std::span<const ValueId> map) {
    for (Instruction& instruction : insts_) {
        for (ValueId& operand : instruction.operands) {
            while (operand.value() < map.size() && map[operand.value()].valid()) {
                operand = map[operand.value()];
            }
        }
    }
}

}  // namespace fornax::kernel::ir

#include "compiler/kernel/analysis/workgroup_steps.h"

#include <algorithm>

namespace fornax::kernel {

using namespace ir;

WorkgroupSteps::WorkgroupSteps(const Kernel& kernel)
    : kernel_(kernel),
      depends_(kernel.num_values()),
      depends_on_x_(kernel.num_values()),
      start_(kernel.num_values()),
      comes_back_(kernel.num_values()) {
    Visit(kernel.body, {});
    bool barriers = false;
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        barriers |= kernel.inst(InstId{i}).op == Op::kBarrier;
    }
    if (!barriers) {
        comes_back_.assign(kernel.num_values(), false);
    }
}

void WorkgroupSteps::Visit(BlockId block, InstId loop) {
    for (InstId id : kernel_.block(block).insts) {
        const Instruction& inst = kernel_.inst(id);
        bool depends = !inst.blocks.empty();
        bool on_x = false;
        if (inst.op == Op::kBuiltin) {
            const auto builtin = static_cast<BuiltinId>(inst.imm);
            depends = builtin == BuiltinId::kWorkgroupIdX || builtin == BuiltinId::kWorkgroupIdY ||
                      builtin == BuiltinId::kWorkgroupIdZ;
            on_x = builtin == BuiltinId::kWorkgroupIdX;
            uses_x_ |= on_x;
        }
        for (ValueId operand : inst.operands) {
            depends |= depends_[operand.index];
            on_x |= depends_on_x_[operand.index];
        }
        for (ValueId result : inst.results) {
            depends_[result.index] = depends;
            depends_on_x_[result.index] = on_x;
        }
        if (inst.op == Op::kLoadBuffer && loop.valid() && (inst.flags & kVolatile) == 0) {
            const Instruction* buffer = kernel_.Definition(inst.operands[0]);
            if (buffer && buffer->op == Op::kBuffer) {
                comes_back_[inst.results[0].index] =
                    std::ranges::any_of(reads_, [&](const Read& read) {
                        return read.binding == buffer->imm && read.loop != loop;
                    });
                reads_.push_back({buffer->imm, loop});
            }
        }
        if (inst.op == Op::kLoop) {
            const std::vector<ValueId>& params = kernel_.block(inst.blocks[0]).params;
            for (size_t i = 0; i < params.size() && i < inst.operands.size(); ++i) {
                start_[params[i].index] = inst.operands[i];
                depends_[params[i].index] = depends_[inst.operands[i].index];
                depends_on_x_[params[i].index] = depends_on_x_[inst.operands[i].index];
            }
        }
        for (BlockId child : inst.blocks) {
            Visit(child, inst.op == Op::kLoop ? id : loop);
            on_x |= LeavesWithX(child);
        }
        for (ValueId result : inst.results) {
            depends_on_x_[result.index] = on_x;
        }
    }
}

// What comes out of a construct's block, or of one around it.
bool WorkgroupSteps::LeavesWithX(BlockId block) const {
    return std::ranges::any_of(kernel_.block(block).insts, [&](InstId id) {
        const Instruction& inst = kernel_.inst(id);
        if (!HasProperty(inst.op, kTerminator)) {
            return std::ranges::any_of(inst.blocks,
                                       [&](BlockId child) { return LeavesWithX(child); });
        }
        return std::ranges::any_of(inst.operands,
                                   [&](ValueId value) { return depends_on_x_[value.index]; });
    });
}

}  // namespace fornax::kernel

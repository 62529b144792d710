#include "compiler/kernel/analysis/reread_buffers.h"

#include <algorithm>
#include <set>
#include <utility>

namespace fornax::kernel {

using namespace ir;

std::vector<bool> FindRereads(const Kernel& kernel) {
    std::vector<bool> rereads(kernel.num_values());
    std::set<std::pair<uint64_t, InstId>> accesses;  // bindings, innermost loops that access them
    bool barriers = false;
    auto is_access = [](const Instruction& inst) {
        return (inst.op == Op::kLoadBuffer || inst.op == Op::kStoreBuffer) &&
               (inst.flags & kVolatile) == 0;
    };
    auto visit = [&](auto& self, BlockId block, InstId loop) -> void {
        for (InstId id : kernel.block(block).insts) {
            const Instruction& inst = kernel.inst(id);
            barriers |= inst.op == Op::kBarrier;
            const Instruction* buffer =
                loop.valid() && is_access(inst) ? kernel.Definition(inst.operands[0]) : nullptr;
            if (buffer && buffer->op == Op::kBuffer) {
                if (inst.op == Op::kLoadBuffer) {
                    rereads[inst.results[0].value()] =
                        std::ranges::any_of(accesses, [&](const auto& access) {
                            return access.first == buffer->imm && access.second != loop;
                        });
                }
                accesses.emplace(buffer->imm, loop);
            }
            for (BlockId child : inst.blocks) {
                self(self, child, inst.op == Op::kLoop ? id : loop);
            }
        }
    };
    visit(visit, kernel.body, {});
    return barriers ? rereads : std::vector<bool>(kernel.num_values());
}

}  // namespace fornax::kernel

#include "compiler/kernel/analysis/reread_buffers.h"

#include <algorithm>
#include <set>
#include <utility>

namespace fornax::kernel {

using namespace ir;

std::vector<bool> FindRereads(const Kernel& kernel) {
    std::vector<bool> rereads(kernel.num_values());
    std::set<std::pair<uint64_t, InstId>> reads;  // bindings, and innermost loops that read them
    bool barriers = false;
    auto visit = [&](auto& self, BlockId block, InstId loop) -> void {
        for (InstId id : kernel.block(block).insts) {
            const Instruction& inst = kernel.inst(id);
            barriers |= inst.op == Op::kBarrier;
            if (inst.op == Op::kLoadBuffer && loop.valid() && (inst.flags & kVolatile) == 0) {
                const Instruction* buffer = kernel.Definition(inst.operands[0]);
                if (buffer && buffer->op == Op::kBuffer) {
                    rereads[inst.results[0].index] =
                        std::ranges::any_of(reads, [&](const auto& read) {
                            return read.first == buffer->imm && read.second != loop;
                        });
                    reads.emplace(buffer->imm, loop);
                }
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

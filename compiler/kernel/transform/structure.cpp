// One walk over the construct tree that records where everything is.
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {

using ir::Op;

Structure::Structure(const ir::Kernel& kernel)
    : block_of(kernel.num_insts()),
      position(kernel.num_insts()),
      depth(kernel.num_blocks()),
      construct_index_(kernel.num_insts(), UINT32_MAX) {
    preorder.reserve(kernel.num_insts());
    Walk(kernel, kernel.body, 0);
}

void Structure::Walk(const ir::Kernel& kernel, ir::BlockId block, uint32_t level) {
    depth[block.value()] = level;
    const auto& insts = kernel.block(block).insts;
    for (uint32_t i = 0; i < insts.size(); ++i) {
        ir::InstId id = insts[i];
        const ir::Instruction& inst = kernel.inst(id);
        block_of[id.value()] = block;
        position[id.value()] = i;
        preorder.push_back(id);
        switch (inst.op) {
            case Op::kYield:
                exits_[construct_index_[kernel.block(block).parent.value()]].push_back(id);
                break;
            case Op::kExit:
                exits_[construct_index_[inst.target.value()]].push_back(id);
                break;
            case Op::kContinue:
                continues_[construct_index_[inst.target.value()]].push_back(id);
                break;
            case Op::kNext:
                nexts_[construct_index_[kernel.block(block).parent.value()]] = id;
                break;
            default:
                break;
        }
        if (inst.blocks.empty()) {
            continue;
        }
        construct_index_[id.value()] = static_cast<uint32_t>(exits_.size());
        exits_.emplace_back();
        continues_.emplace_back();
        nexts_.emplace_back();
        for (ir::BlockId inner : inst.blocks) {
            Walk(kernel, inner, level + 1);
        }
    }
}

}  // namespace fornax::kernel

// Where everything is in a kernel's construct tree: what passes look up instead of walking again.
// A snapshot: any change of blocks or edges makes it stale.
#pragma once

#include <vector>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

struct Structure {
    explicit Structure(const ir::Kernel& kernel);

    // The terminators that give a construct its results: its blocks' yields and the exits to it.
    const std::vector<ir::InstId>& Exits(ir::InstId construct) const {
        return exits_[construct_index_[construct.value()]];
    }
    // The terminators that give a loop's continuing block its parameters.
    const std::vector<ir::InstId>& Continues(ir::InstId loop) const {
        return continues_[construct_index_[loop.value()]];
    }
    // The loop's `next`.
    ir::InstId Next(ir::InstId loop) const { return nexts_[construct_index_[loop.value()]]; }

    // The block in which the value is defined.
    ir::BlockId DefinitionBlock(const ir::Kernel& kernel, ir::ValueId id) const {
        const ir::Value& value = kernel.value(id);
        return value.inst.valid() ? block_of[value.inst.value()] : value.block;
    }

    std::vector<ir::InstId> preorder;   // every instruction of the tree; constructs before contents
    std::vector<ir::BlockId> block_of;  // by instruction; invalid for those not in the tree
    std::vector<uint32_t> position;     // by instruction: its index in the block
    std::vector<uint32_t> depth;        // by block: 0 for the body

  private:
    void Walk(const ir::Kernel& kernel, ir::BlockId block, uint32_t depth);

    std::vector<uint32_t> construct_index_;  // by instruction
    std::vector<std::vector<ir::InstId>> exits_;
    std::vector<std::vector<ir::InstId>> continues_;
    std::vector<ir::InstId> nexts_;
};

}  // namespace fornax::kernel

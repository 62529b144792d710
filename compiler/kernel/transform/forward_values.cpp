// Removes the merges that merge nothing: construct results and parameters with one incoming value.
#include "compiler/kernel/transform/cleanup.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {

using namespace ir;

namespace {

class Forwarder {
  public:
    explicit Forwarder(Kernel& kernel)
        : kernel_(kernel), structure_(kernel), map_(kernel.num_values()) {}

    // True if anything was replaced.
    bool Run() {
        VisitBlock(kernel_.body);
        if (changed_) {
            kernel_.ReplaceUses(map_);
        }
        return changed_;
    }

  private:
    ValueId Resolve(ValueId id) const {
        while (map_[id.value()].valid()) {
            id = map_[id.value()];
        }
        return id;
    }

    // Inner constructs first: their results decide the outer ones.
    void VisitBlock(BlockId block) {
        for (InstId id : kernel_.block(block).insts) {
            const Instruction& inst = kernel_.inst(id);
            if (inst.blocks.empty()) {
                continue;
            }
            if (inst.op == Op::kLoop) {
                VisitBlock(inst.blocks[0]);
                VisitParams(id, inst.blocks[1]);
                VisitBlock(inst.blocks[1]);
                VisitParams(id, inst.blocks[0]);
            } else {
                for (BlockId inner : inst.blocks) {
                    VisitBlock(inner);
                }
            }
            for (size_t i = 0; i < inst.results.size(); ++i) {
                Merge merge{inst.results[i]};
                for (InstId edge : structure_.Exits(id)) {
                    Add(merge, kernel_.inst(edge).operands[i]);
                }
                Replace(merge, structure_.depth[block.value()]);
            }
        }
    }

    void VisitParams(InstId loop_id, BlockId block) {
        const Instruction& loop = kernel_.inst(loop_id);
        const auto& params = kernel_.block(block).params;
        uint32_t outside = structure_.depth[block.value()] - 1;
        for (size_t i = 0; i < params.size(); ++i) {
            Merge merge{params[i]};
            if (block == loop.blocks[0]) {
                Add(merge, loop.operands[i]);
                Add(merge, kernel_.inst(structure_.Next(loop_id)).operands[i]);
            } else {
                for (InstId edge : structure_.Continues(loop_id)) {
                    Add(merge, kernel_.inst(edge).operands[i]);
                }
                // The body's own parameters are visible in the continuing block.
                if (merge.one.valid() && !merge.several &&
                    kernel_.value(merge.one).block == loop.blocks[0]) {
                    Replace(merge, outside + 1);
                    continue;
                }
            }
            Replace(merge, outside);
        }
    }

    struct Merge {
        ValueId self;
        ValueId one;
        bool several = false;
    };
    void Add(Merge& merge, ValueId incoming) const {
        incoming = Resolve(incoming);
        if (incoming == merge.self || incoming == merge.one) {
            return;
        }
        merge.several |= merge.one.valid();
        merge.one = incoming;
    }
    // What is visible at an edge was defined around it, so its depth tells whether it is also
    // visible where the construct stands, `depth` levels down.
    void Replace(const Merge& merge, uint32_t depth) {
        if (!merge.one.valid() || merge.several || map_[merge.self.value()].valid()) {
            return;
        }
        BlockId block = structure_.DefinitionBlock(kernel_, merge.one);
        if (structure_.depth[block.value()] > depth) {
            return;
        }
        map_[merge.self.value()] = merge.one;
        changed_ = true;
    }

    Kernel& kernel_;
    Structure structure_;
    std::vector<ValueId> map_;  // by value
    bool changed_ = false;
};

}  // namespace

void ForwardSingleValues(Kernel& kernel) {
    // One walk settles all but merges that wait for a later one; the bound keeps it linear.
    for (int i = 0; i < 4 && Forwarder(kernel).Run(); ++i) {
    }
}

}  // namespace fornax::kernel

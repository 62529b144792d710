// Renumbering of a kernel after passes have deleted instructions.
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel::ir {

// Definitions come before uses in the order of the text, so one walk can renumber both.
class Compactor {
  public:
    explicit Compactor(Kernel& kernel)
        : kernel_(kernel), new_inst_(kernel.num_insts()), new_value_(kernel.num_values()) {}

    void Run() {
        kernel_.body = MoveBlock(kernel_.body, InstId{});
        kernel_.insts_ = std::move(insts_);
        kernel_.values_ = std::move(values_);
        kernel_.blocks_ = std::move(blocks_);
    }

  private:
    void Define(std::vector<ValueId>& ids, InstId inst, BlockId block) {
        for (uint32_t i = 0; i < ids.size(); ++i) {
            ValueId id{static_cast<uint32_t>(values_.size())};
            values_.push_back({kernel_.type(ids[i]), inst, block, i});
            new_value_[ids[i].value()] = id;
            ids[i] = id;
        }
    }

    BlockId MoveBlock(BlockId old, InstId parent) {
        BlockId id{static_cast<uint32_t>(blocks_.size())};
        blocks_.push_back(std::move(kernel_.block(old)));
        blocks_.back().parent = parent;
        Define(blocks_.back().params, InstId{}, id);
        for (size_t i = 0; i < blocks_[id.value()].insts.size(); ++i) {
            InstId moved = MoveInst(blocks_[id.value()].insts[i]);
            blocks_[id.value()].insts[i] = moved;
        }
        return id;
    }

    InstId MoveInst(InstId old) {
        InstId id{static_cast<uint32_t>(insts_.size())};
        new_inst_[old.value()] = id;
        Instruction& inst = insts_.emplace_back(std::move(kernel_.inst(old)));
        for (ValueId& operand : inst.operands) {
            operand = new_value_[operand.value()];
        }
        Define(inst.results, id, BlockId{});
        if (inst.target.valid()) {
            inst.target = new_inst_[inst.target.value()];
        }
        for (size_t i = 0; i < insts_[id.value()].blocks.size(); ++i) {
            BlockId moved = MoveBlock(insts_[id.value()].blocks[i], id);
            insts_[id.value()].blocks[i] = moved;
        }
        return id;
    }

    Kernel& kernel_;
    std::vector<InstId> new_inst_;    // by old instruction
    std::vector<ValueId> new_value_;  // by old value
    std::vector<Instruction> insts_;
    std::vector<Value> values_;
    std::vector<Block> blocks_;
};

void Kernel::Compact() {
    Compactor(*this).Run();
}

}  // namespace fornax::kernel::ir

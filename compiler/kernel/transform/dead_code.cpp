// Dead code elimination over the construct tree: marks from effects, sweeps the rest.
//
// Results and parameters are marked one by one, so a value that only carries itself round a loop
// dies. A construct lives if something in it does; then also the exits to it, and with them the
// constructs around those exits.
#include <algorithm>

#include "compiler/kernel/transform/cleanup.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {

using namespace ir;

namespace {

class DeadCode {
  public:
    explicit DeadCode(Kernel& kernel)
        : kernel_(kernel),
          structure_(kernel),
          live_inst_(kernel.num_insts()),
          live_value_(kernel.num_values()),
          stores_(kernel.locals.size()),
          local_loaded_(kernel.locals.size()) {}

    void Run() {
        for (InstId id : structure_.preorder) {
            const Instruction& inst = kernel_.inst(id);
            if (inst.op == Op::kStoreLocal) {
                stores_[inst.imm].push_back(id);
            } else if (IsRoot(inst)) {
                MarkInst(id);
            }
        }
        Propagate();
        SweepBlock(kernel_.body);
        SweepLocals();
        // Passes take time by what the vectors hold, not by what lives.
        if (kernel_.num_insts() > 1000 + 2 * CountLive()) {
            kernel_.Compact();
        }
    }

  private:
    uint32_t CountLive() const {
        return static_cast<uint32_t>(std::ranges::count(live_inst_, true));
    }

    static bool IsRoot(const Instruction& inst) {
        if (HasProperty(inst.op, kWritesMemory) || inst.op == Op::kReturn ||
            inst.op == Op::kUnreachable || inst.op == Op::kCount) {
            return true;
        }
        return HasProperty(inst.op, kReadsMemory) && (inst.flags & kVolatile);
    }

    void MarkInst(InstId id) {
        if (live_inst_[id.value()]) {
            return;
        }
        live_inst_[id.value()] = true;
        work_insts_.push_back(id);
    }
    void MarkValue(ValueId id) {
        if (live_value_[id.value()]) {
            return;
        }
        live_value_[id.value()] = true;
        work_values_.push_back(id);
    }

    void Propagate() {
        while (!work_insts_.empty() || !work_values_.empty()) {
            if (!work_values_.empty()) {
                ValueId id = work_values_.back();
                work_values_.pop_back();
                FollowValue(id);
            } else {
                InstId id = work_insts_.back();
                work_insts_.pop_back();
                FollowInst(id);
            }
        }
    }

    void FollowInst(InstId id) {
        const Instruction& inst = kernel_.inst(id);
        InstId parent = kernel_.block(structure_.block_of[id.value()]).parent;
        if (parent.valid()) {
            MarkInst(parent);
        }
        if (HasProperty(inst.op, kTerminator)) {
            return;  // its operands live if what they give does
        }
        if (HasProperty(inst.op, kRegions)) {
            for (InstId edge : structure_.Exits(id)) {
                MarkInst(edge);
            }
            if (inst.op == Op::kLoop) {
                for (InstId edge : structure_.Continues(id)) {
                    MarkInst(edge);
                }
                return;  // its operands live if the parameters do
            }
        }
        if (inst.op == Op::kLoadLocal && !local_loaded_[inst.imm]) {
            local_loaded_[inst.imm] = true;
            for (InstId store : stores_[inst.imm]) {
                MarkInst(store);
            }
        }
        for (ValueId operand : inst.operands) {
            MarkValue(operand);
        }
    }

    void FollowValue(ValueId id) {
        const Value& value = kernel_.value(id);
        if (value.inst.valid()) {
            MarkInst(value.inst);
            if (HasProperty(kernel_.inst(value.inst).op, kRegions)) {
                for (InstId edge : structure_.Exits(value.inst)) {
                    MarkValue(kernel_.inst(edge).operands[value.position]);
                }
            }
            return;
        }
        InstId loop = kernel_.block(value.block).parent;
        MarkInst(loop);
        if (kernel_.inst(loop).blocks[1] == value.block) {
            for (InstId edge : structure_.Continues(loop)) {
                MarkValue(kernel_.inst(edge).operands[value.position]);
            }
            return;
        }
        MarkValue(kernel_.inst(loop).operands[value.position]);
        MarkValue(kernel_.inst(structure_.Next(loop)).operands[value.position]);
    }

    // Drops the entries of `ids` whose value among `decides` is dead.
    void DropDead(std::vector<ValueId>& ids, const std::vector<ValueId>& decides) {
        size_t kept = 0;
        for (size_t i = 0; i < ids.size(); ++i) {
            if (live_value_[decides[i].value()]) {
                ids[kept++] = ids[i];
            }
        }
        ids.resize(kept);
    }
    // The same for the list of definitions itself, once nothing else needs the old one.
    void DropDeadDefinitions(std::vector<ValueId>& ids) {
        std::erase_if(ids, [&](ValueId id) { return !live_value_[id.value()]; });
        for (uint32_t i = 0; i < ids.size(); ++i) {
            kernel_.value(ids[i]).position = i;
        }
    }

    void SweepBlock(BlockId block) {
        auto& insts = kernel_.block(block).insts;
        size_t kept = 0;
        for (InstId id : insts) {
            Instruction& inst = kernel_.inst(id);
            if (!HasProperty(inst.op, kTerminator) && !live_inst_[id.value()]) {
                continue;
            }
            insts[kept++] = id;
            if (HasProperty(inst.op, kRegions)) {
                SweepConstruct(id);
                continue;
            }
            switch (inst.op) {
                case Op::kYield:
                    DropDead(inst.operands, kernel_.inst(kernel_.block(block).parent).results);
                    break;
                case Op::kExit:
                    DropDead(inst.operands, kernel_.inst(inst.target).results);
                    break;
                case Op::kContinue:
                    DropDead(inst.operands,
                             kernel_.block(kernel_.inst(inst.target).blocks[1]).params);
                    break;
                case Op::kNext: {
                    const Instruction& loop = kernel_.inst(kernel_.block(block).parent);
                    DropDead(inst.operands, kernel_.block(loop.blocks[0]).params);
                    break;
                }
                default:
                    break;
            }
        }
        insts.resize(kept);
    }

    void SweepConstruct(InstId id) {
        Instruction& inst = kernel_.inst(id);
        bool loop = inst.op == Op::kLoop;
        if (loop) {
            DropDead(inst.operands, kernel_.block(inst.blocks[0]).params);
        }
        for (BlockId block : inst.blocks) {
            SweepBlock(block);
        }
        if (loop) {
            for (BlockId block : inst.blocks) {
                DropDeadDefinitions(kernel_.block(block).params);
            }
        }
        DropDeadDefinitions(inst.results);
    }

    // Renumbers the locals that are still loaded.
    void SweepLocals() {
        std::vector<uint64_t> new_index(kernel_.locals.size());
        size_t kept = 0;
        for (size_t i = 0; i < kernel_.locals.size(); ++i) {
            new_index[i] = kept;
            if (local_loaded_[i]) {
                kernel_.locals[kept++] = kernel_.locals[i];
            }
        }
        if (kept == kernel_.locals.size()) {
            return;
        }
        kernel_.locals.resize(kept);
        for (InstId id : structure_.preorder) {
            Instruction& inst = kernel_.inst(id);
            if (live_inst_[id.value()] &&
                (inst.op == Op::kLoadLocal || inst.op == Op::kStoreLocal)) {
                inst.imm = new_index[inst.imm];
            }
        }
    }

    Kernel& kernel_;
    Structure structure_;
    std::vector<bool> live_inst_;
    std::vector<bool>
        live_value_;  // results of constructs and parameters need it; others have it too
    std::vector<std::vector<InstId>> stores_;  // by local
    std::vector<bool> local_loaded_;           // by local
    std::vector<InstId> work_insts_;
    std::vector<ValueId> work_values_;
};

}  // namespace

void EliminateDeadCode(Kernel& kernel) {
    DeadCode(kernel).Run();
}

}  // namespace fornax::kernel

// The walk of the pass Simplify: simplify.cpp does blocks and plain instructions,
// simplify_constructs.cpp takes constructs apart.
#pragma once

#include <array>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/kernel/ir/kernel.h"
#include "compiler/kernel/transform/expression.h"
#include "compiler/kernel/transform/value_table.h"

namespace fornax::kernel {

class Simplifier : public ExpressionBuilder {
  public:
    explicit Simplifier(ir::Kernel& kernel)
        : kernel_(kernel),
          table_(kernel),
          exits_to_(kernel.num_insts()),
          continues_to_(kernel.num_insts()) {}

    // True if a construct was taken apart, so that another run may find more.
    bool Run() {
        CountExits(kernel_.body);
        Insts body;
        ir::InstId last = ProcessInsts(kernel_.body, body);
        body.push_back(last);
        body.insert(body.begin(), prologue_.begin(), prologue_.end());
        kernel_.block(kernel_.body).insts = std::move(body);
        kernel_.ReplaceUses(map_);
        return changed_;
    }

    const ir::Kernel& kernel() const override { return kernel_; }
    const KnownBounds& known_bounds() const override { return bounds_; }
    ir::ValueId Const(ir::Type type, uint64_t bits) override;
    ir::ValueId Build(Expression expression) override { return Place(std::move(expression), {}); }

  private:
    using Insts = std::vector<ir::InstId>;

    // An exit from a block's own end is a yield.
    void CountExits(ir::BlockId block) {
        ir::InstId parent = kernel_.block(block).parent;
        for (ir::InstId id : kernel_.block(block).insts) {
            ir::Instruction& inst = kernel_.inst(id);
            if (inst.op == ir::Op::kExit && inst.target == parent &&
                kernel_.inst(parent).op != ir::Op::kLoop) {
                inst.op = ir::Op::kYield;
                inst.target = {};
            }
            if (inst.op == ir::Op::kExit) {
                ++exits_to_[inst.target.value()];
            } else if (inst.op == ir::Op::kContinue) {
                ++continues_to_[inst.target.value()];
            }
            for (ir::BlockId inner : inst.blocks) {
                CountExits(inner);
            }
        }
    }
    bool HasExits(ir::InstId id) const {
        return id.value() < exits_to_.size() && exits_to_[id.value()] != 0;
    }

    ir::ValueId Resolve(ir::ValueId id) const {
        while (id.value() < map_.size() && map_[id.value()].valid()) {
            id = map_[id.value()];
        }
        return id.value() < fact_of_.size() && fact_of_[id.value()].valid() ? fact_of_[id.value()]
                                                                            : id;
    }
    void Map(ir::ValueId from, ir::ValueId to) {
        if (map_.size() <= from.value()) {
            map_.resize(kernel_.num_values());
        }
        if (from != to) {
            map_[from.value()] = to;
        }
    }

    ir::ValueId UndefOf(ir::Type type);
    ir::ValueId Place(Expression expression, ir::InstId reuse);
    void MapResults(ir::InstId from, std::span<const ir::ValueId> to);
    void ProcessPlain(ir::InstId id);
    void ProcessPure(ir::InstId id);
    void MergeOrKeep(ir::InstId id, uint64_t epoch);
    bool FoldBuiltin(const ir::Instruction& inst);
    bool FoldBufferFrom(const ir::Instruction& inst);
    bool FoldTableLoad(ir::InstId id);
    void CountWrites(ir::Op op);

    ir::InstId ProcessInsts(ir::BlockId block, Insts& out);
    void ProcessBlock(ir::BlockId block, ir::ValueId value = {}, ir::ValueId known = {});
    ir::InstId ProcessConstruct(ir::InstId id, Insts& out);
    ir::InstId ProcessIf(ir::InstId id, Insts& out);
    ir::InstId ProcessSwitch(ir::InstId id, Insts& out);
    ir::InstId ProcessScope(ir::InstId id, Insts& out);
    ir::InstId ProcessLoop(ir::InstId id, Insts& out);
    void MergeLoopParams(ir::InstId id);
    bool IsUndef(ir::ValueId value) const;
    void UnwindLoop(ir::InstId id);
    void RetargetContinues(ir::BlockId block, ir::InstId loop, ir::InstId scope);
    ir::InstId Take(ir::InstId id, ir::BlockId block, Insts& out);
    ir::InstId Inline(ir::InstId id, ir::BlockId block, Insts& out);
    ir::InstId Hoist(ir::InstId id, size_t leaving, Insts& out);
    bool FlattenToSelects(ir::InstId id);
    void AddFacts(ir::ValueId value, ir::ValueId known);
    void AddBound(ir::ValueId value, uint64_t bound);
    void AddBoundOf(const ir::Instruction& order, bool holds);
    ir::InstId NewTerminator(ir::Op op);

    bool Yields(ir::BlockId block) const {
        return kernel_.inst(kernel_.block(block).insts.back()).op == ir::Op::kYield;
    }
    bool OnlyYields(ir::BlockId block) const {
        return kernel_.block(block).insts.size() == 1 && Yields(block);
    }

    ir::Kernel& kernel_;
    ValueTable table_;
    std::vector<uint32_t> exits_to_;      // by construct: exits, not yields
    std::vector<uint32_t> continues_to_;  // by loop
    std::vector<ir::ValueId> map_;        // by value: what replaces it
    std::vector<ir::ValueId> fact_of_;    // by value: what it is known to be here
    std::vector<ir::ValueId> facts_;      // the values with one, innermost last
    KnownBounds bounds_;
    std::vector<std::pair<ir::ValueId, uint64_t>> tightened_;  // and what was known before
    Insts* out_ = nullptr;                                     // the list that Build adds to
    Insts prologue_;
    static constexpr size_t kNumTypes = static_cast<size_t>(ir::Type::kBuffer) + 1;
    std::array<std::unordered_map<uint64_t, ir::ValueId>, kNumTypes> consts_;
    std::array<ir::ValueId, kNumTypes> undefs_;
    // Count the writes met so far; two loads between which none lies give the same.
    uint64_t buffer_epoch_ = 1;
    uint64_t shared_epoch_ = 1;
    uint64_t local_epoch_ = 1;
    uint32_t origin_ = 0;
    bool changed_ = false;
};

}  // namespace fornax::kernel

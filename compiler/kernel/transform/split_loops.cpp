// Loops that carry more values than there are vector registers: a tile of sums that each thread
// keeps while it walks through workgroup memory. Where the sums do not depend on each other, the
// loop is run once for each half of them instead, with all of a half's sums in registers; what both
// read is read twice.
#include <algorithm>
#include <bitset>
#include <numeric>
#include <optional>

#include "compiler/kernel/transform/clone.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {

using namespace ir;

namespace {

constexpr size_t kMaxCarried = 128;
using Params = std::bitset<kMaxCarried>;  // of a loop's body

struct Plan {
    InstId loop;
    uint32_t parts = 0;
    std::vector<uint32_t> part_of_result;
};

class Splitter {
  public:
    Splitter(const Kernel& kernel, const Structure& structure, uint32_t registers)
        : kernel_(kernel), structure_(structure), registers_(registers) {}

    std::optional<Plan> Examine(InstId id) {
        const Instruction& loop = kernel_.inst(id);
        body_ = &kernel_.block(loop.blocks[0]);
        continuing_ = &kernel_.block(loop.blocks[1]);
        const size_t count = body_->params.size();
        // Fewer fit beside what the loop reads.
        if (count < registers_ * 3 / 4 || count > kMaxCarried || !IsPlain(id)) {
            return std::nullopt;
        }
        depends_.assign(kernel_.num_values(), {});
        for (size_t i = 0; i < count; ++i) {
            depends_[body_->params[i].value()].set(i);
        }
        FollowBlock(*body_);
        for (size_t i = 0; i < continuing_->params.size(); ++i) {
            depends_[continuing_->params[i].value()] = Of(end_->operands[i]);
        }
        FollowBlock(*continuing_);

        Params control = Of(condition_);
        for (size_t round = 0; round < count; ++round) {
            for (size_t i = 0; i < count; ++i) {
                if (control[i]) {
                    control |= Of(next_->operands[i]);
                }
            }
        }
        const size_t carried = count - control.count();
        if (carried < registers_ * 3 / 4) {
            return std::nullopt;
        }
        group_.resize(count);
        std::iota(group_.begin(), group_.end(), size_t{0});
        for (size_t i = 0; i < count; ++i) {
            if (!control[i]) {
                Join(i, Of(next_->operands[i]) & ~control);
            }
        }
        for (ValueId result : exit_->operands) {
            const Params from = Of(result) & ~control;
            if (from.any()) {
                Join(First(from), from);
            }
        }
        return MakePlan(id, control, carried);
    }

  private:
    // Straight code that only reads, with one test that leaves.
    bool IsPlain(InstId id) {
        const std::vector<InstId>& exits = structure_.Exits(id);
        const std::vector<InstId>& continues = structure_.Continues(id);
        if (exits.size() != 1 || continues.size() != 1 || continues[0] != body_->insts.back()) {
            return false;
        }
        end_ = &kernel_.inst(continues[0]);
        exit_ = &kernel_.inst(exits[0]);
        next_ = &kernel_.inst(continuing_->insts.back());
        condition_ = ValueId();
        for (InstId inner : body_->insts) {
            const Instruction& inst = kernel_.inst(inner);
            if (inst.op == Op::kIf) {
                if (condition_.valid() || !inst.results.empty()) {
                    return false;
                }
                for (BlockId block : inst.blocks) {
                    if (kernel_.block(block).insts.size() != 1) {
                        return false;
                    }
                }
                condition_ = inst.operands[0];
            } else if (!MayRepeat(inst) && inner != continues[0]) {
                return false;
            }
        }
        for (InstId inner : continuing_->insts) {
            const Instruction& inst = kernel_.inst(inner);
            if (!MayRepeat(inst) && &inst != next_) {
                return false;
            }
        }
        return condition_.valid() && next_->op == Op::kNext;
    }

    static bool MayRepeat(const Instruction& inst) {
        if (HasProperty(inst.op, kPure) || inst.op == Op::kCount) {
            return true;
        }
        return HasProperty(inst.op, kReadsMemory) && inst.blocks.empty() &&
               (inst.flags & kVolatile) == 0 &&
               !HasProperty(inst.op, kWritesMemory | kConvergent | kSubgroup);
    }

    Params Of(ValueId value) const { return depends_[value.value()]; }

    void FollowBlock(const Block& block) {
        for (InstId id : block.insts) {
            const Instruction& inst = kernel_.inst(id);
            Params all;
            for (ValueId operand : inst.operands) {
                all |= Of(operand);
            }
            for (ValueId result : inst.results) {
                depends_[result.value()] = all;
            }
        }
    }

    static size_t First(const Params& params) {
        size_t i = 0;
        while (!params[i]) {
            ++i;
        }
        return i;
    }

    size_t Group(size_t param) {
        while (group_[param] != param) {
            param = group_[param] = group_[group_[param]];
        }
        return param;
    }

    void Join(size_t param, const Params& others) {
        for (size_t i = 0; i < group_.size(); ++i) {
            if (others[i]) {
                group_[std::max(Group(param), Group(i))] = std::min(Group(param), Group(i));
            }
        }
    }

    std::optional<Plan> MakePlan(InstId id, const Params& control, size_t carried) {
        Plan plan{.loop = id, .parts = 0, .part_of_result = {}};
        const size_t wanted_parts = (carried + registers_ / 2 - 1) / (registers_ / 2);
        const size_t wanted = (carried + wanted_parts - 1) / wanted_parts;
        // Neighbours stay together: they are rows of the tile, which read the same.
        std::vector<Params> parts;
        std::vector<uint32_t> part_of_group(group_.size(), UINT32_MAX);
        for (size_t i = 0; i < group_.size(); ++i) {
            if (control[i]) {
                continue;
            }
            uint32_t& part = part_of_group[Group(i)];
            if (part == UINT32_MAX) {
                if (parts.empty() || parts.back().count() >= wanted) {
                    parts.emplace_back();
                }
                part = static_cast<uint32_t>(parts.size() - 1);
            }
            parts[part].set(i);
        }
        if (parts.size() < 2) {
            return std::nullopt;
        }
        size_t work = 0;
        for (const Params& part : parts) {
            work += CountNeeded(part, control);
        }
        if (work * 2 > CountNeeded(~Params(), control) * 3) {
            return std::nullopt;
        }
        plan.parts = static_cast<uint32_t>(parts.size());
        for (ValueId result : exit_->operands) {
            const Params from = Of(result) & ~control;
            plan.part_of_result.push_back(from.any() ? part_of_group[Group(First(from))] : 0);
        }
        return plan;
    }

    // The instructions that the given parameters' next values and the loop's test take.
    size_t CountNeeded(const Params& params, const Params& control) const {
        std::vector<bool> needed(kernel_.num_values(), false);
        needed[condition_.value()] = true;
        for (size_t i = 0; i < next_->operands.size(); ++i) {
            if (params[i] || control[i]) {
                needed[next_->operands[i].value()] = true;
            }
        }
        size_t count = CountIn(*continuing_, needed);
        for (size_t i = 0; i < continuing_->params.size(); ++i) {
            if (needed[continuing_->params[i].value()]) {
                needed[end_->operands[i].value()] = true;
            }
        }
        return count + CountIn(*body_, needed);
    }

    size_t CountIn(const Block& block, std::vector<bool>& needed) const {
        size_t count = 0;
        for (size_t i = block.insts.size(); i-- > 0;) {
            const Instruction& inst = kernel_.inst(block.insts[i]);
            if (std::none_of(inst.results.begin(), inst.results.end(),
                             [&](ValueId result) { return needed[result.value()]; })) {
                continue;
            }
            ++count;
            for (ValueId operand : inst.operands) {
                needed[operand.value()] = true;
            }
        }
        return count;
    }

    const Kernel& kernel_;
    const Structure& structure_;
    const uint32_t registers_;
    const Block* body_ = nullptr;
    const Block* continuing_ = nullptr;
    const Instruction* end_ = nullptr;   // the body's `continue`
    const Instruction* exit_ = nullptr;  // the only way out
    const Instruction* next_ = nullptr;
    ValueId condition_;
    std::vector<Params> depends_;  // by value
    std::vector<size_t> group_;    // by parameter: parameters that need each other
};

// The first part counts for all.
void RemoveCounts(Kernel& kernel, InstId loop) {
    for (BlockId block : kernel.inst(loop).blocks) {
        std::erase_if(kernel.block(block).insts,
                      [&](InstId id) { return kernel.inst(id).op == Op::kCount; });
    }
}

}  // namespace

bool SplitLoops(Kernel& kernel, uint32_t vector_registers) {
    std::vector<Plan> plans;
    const Structure structure(kernel);
    Splitter splitter(kernel, structure, vector_registers);
    for (InstId id : structure.preorder) {
        if (kernel.inst(id).op != Op::kLoop) {
            continue;
        }
        if (std::optional<Plan> plan = splitter.Examine(id)) {
            plans.push_back(std::move(*plan));
        }
    }
    if (plans.empty()) {
        return false;
    }
    // Every part starts as a copy of the whole; what it does not need is dead code.
    std::vector<ValueId> replaced(kernel.num_values());
    for (const Plan& plan : plans) {
        std::vector<InstId> copies;
        for (uint32_t part = 1; part < plan.parts; ++part) {
            const InstId copy = Cloner(kernel).Clone(plan.loop);
            RemoveCounts(kernel, copy);
            copies.push_back(copy);
            for (size_t i = 0; i < plan.part_of_result.size(); ++i) {
                if (plan.part_of_result[i] == part) {
                    replaced[kernel.inst(plan.loop).results[i].value()] =
                        kernel.inst(copy).results[i];
                }
            }
        }
        std::vector<InstId>& insts = kernel.block(structure.block_of[plan.loop.value()]).insts;
        const auto place = std::find(insts.begin(), insts.end(), plan.loop);
        insts.insert(place + 1, copies.begin(), copies.end());
    }
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        for (ValueId& operand : kernel.inst(InstId{i}).operands) {
            if (operand.value() < replaced.size() && replaced[operand.value()].valid()) {
                operand = replaced[operand.value()];
            }
        }
    }
    return true;
}

}  // namespace fornax::kernel

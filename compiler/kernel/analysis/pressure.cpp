// Live ranges over the tree in program order; what a loop uses from outside lives to the loop's
// end. Only one branch of a selection runs: what only a later branch uses is dead in the earlier
// ones.
#include "compiler/kernel/analysis/pressure.h"

#include <algorithm>
#include <unordered_map>

namespace fornax::kernel {

namespace {

class LiveRanges {
  public:
    LiveRanges(const ir::Kernel& kernel, const LaneAnalysis& patterns)
        : kernel_(kernel),
          patterns_(patterns),
          start_(kernel.num_values(), 0),
          end_(kernel.num_values(), 0) {
        Visit(kernel.body);
    }

    RegisterPressure Measure() const {
        std::vector<int32_t> change(position_ + 2, 0);
        for (uint32_t i = 0; i < kernel_.num_values(); ++i) {
            ir::ValueId value{i};
            if (end_[i] <= start_[i] || !Counts(value)) {
                continue;
            }
            const int32_t weight = Weight(value);
            change[start_[i]] += weight;
            change[end_[i]] -= weight;
        }
        for (const Hole& hole : holes_) {
            // What is used behind the selection lives in all of its branches.
            if (end_[hole.value.value()] <= hole.selection_end && Counts(hole.value)) {
                const int32_t weight = Weight(hole.value);
                change[hole.begin] -= weight;
                change[hole.end] += weight;
            }
        }
        RegisterPressure pressure;
        pressure.divergent_loop = divergent_loop_;
        int32_t live = 0;
        for (int32_t delta : change) {
            live += delta;
            pressure.live_values = std::max(pressure.live_values, static_cast<uint32_t>(live));
        }
        return pressure;
    }

  private:
    // Masks live in registers of their own on AVX-512 and are short-lived elsewhere.
    bool Counts(ir::ValueId value) const {
        return patterns_.pattern(value).varying() && kernel_.type(value) != ir::Type::kBool;
    }

    int32_t Weight(ir::ValueId value) const {
        return ir::BitWidth(kernel_.type(value)) > 32 ? 2 : 1;
    }

    void Visit(ir::BlockId block) {
        for (ir::ValueId param : kernel_.block(block).params) {
            start_[param.value()] = position_;
        }
        for (ir::InstId id : kernel_.block(block).insts) {
            const ir::Instruction& inst = kernel_.inst(id);
            ++position_;
            for (ir::ValueId operand : inst.operands) {
                Use(operand);
            }
            if (inst.op == ir::Op::kLoop) {
                divergent_loop_ |= patterns_.facts(id).divergent;
                loops_.push_back({position_, {}});
            }
            if (inst.op == ir::Op::kIf) {
                VisitBranches(inst.blocks);
            } else {
                for (ir::BlockId child : inst.blocks) {
                    Visit(child);
                }
            }
            if (inst.op == ir::Op::kLoop) {
                Loop loop = std::move(loops_.back());
                loops_.pop_back();
                for (ir::ValueId value : loop.outside) {
                    Use(value);
                }
            }
            for (ir::ValueId result : inst.results) {
                start_[result.value()] = position_;
            }
        }
    }

    template <typename Blocks>
    void VisitBranches(const Blocks& blocks) {
        const uint32_t begin = position_;
        struct Range {
            uint32_t begin, end;
            std::unordered_map<uint32_t, uint32_t> last_uses;
        };
        std::vector<Range> ranges;
        for (ir::BlockId child : blocks) {
            selections_.push_back({begin, {}});
            Range range = {.begin = position_, .end = position_, .last_uses = {}};
            Visit(child);
            range.end = position_;
            range.last_uses = std::move(selections_.back().last_uses);
            selections_.pop_back();
            ranges.push_back(std::move(range));
        }
        for (size_t later = 0; later < ranges.size(); ++later) {
            for (const auto& [value, last] : ranges[later].last_uses) {
                if (!selections_.empty() && start_[value] < selections_.back().begin) {
                    uint32_t& outer = selections_.back().last_uses[value];
                    outer = std::max(outer, last);
                }
                // The earlier branches, up to the one that uses it last.
                for (size_t i = later; i-- > 0;) {
                    const auto used = ranges[i].last_uses.find(value);
                    const bool is_used = used != ranges[i].last_uses.end();
                    holes_.push_back({ir::ValueId{value}, is_used ? used->second : ranges[i].begin,
                                      ranges[i].end, position_});
                    if (is_used) {
                        break;
                    }
                }
            }
        }
    }

    void Use(ir::ValueId value) {
        end_[value.value()] = std::max(end_[value.value()], position_);
        if (!selections_.empty() && start_[value.value()] < selections_.back().begin) {
            selections_.back().last_uses[value.value()] = position_;
        }
        if (!loops_.empty() && start_[value.value()] < loops_.back().start) {
            loops_.back().outside.push_back(value);
        }
    }

    struct Loop {
        uint32_t start;
        std::vector<ir::ValueId> outside;
    };
    const ir::Kernel& kernel_;
    const LaneAnalysis& patterns_;
    std::vector<uint32_t> start_;
    std::vector<uint32_t> end_;
    std::vector<Loop> loops_;
    struct Selection {
        uint32_t begin;
        std::unordered_map<uint32_t, uint32_t> last_uses;  // of values from before it
    };
    std::vector<Selection> selections_;  // whose branches are visited
    // Where a value is dead although a later branch of the selection uses it.
    struct Hole {
        ir::ValueId value;
        uint32_t begin, end, selection_end;
    };
    std::vector<Hole> holes_;
    uint32_t position_ = 0;
    bool divergent_loop_ = false;
};

}  // namespace

RegisterPressure EstimatePressure(const ir::Kernel& kernel, const LaneAnalysis& patterns) {
    return LiveRanges(kernel, patterns).Measure();
}

}  // namespace fornax::kernel

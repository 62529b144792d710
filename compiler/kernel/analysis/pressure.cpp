// Live ranges over the tree in program order; what a loop uses from outside lives to the loop's
// end.
#include "compiler/kernel/analysis/pressure.h"

#include <algorithm>

namespace fornax::kernel {

namespace {

class LiveRanges {
  public:
    LiveRanges(const ir::Kernel& kernel, const ShapeAnalysis& shapes)
        : kernel_(kernel),
          shapes_(shapes),
          start_(kernel.num_values(), 0),
          end_(kernel.num_values(), 0) {
        Visit(kernel.body);
    }

    RegisterPressure Measure() const {
        std::vector<int32_t> change(position_ + 2, 0);
        for (uint32_t i = 0; i < kernel_.num_values(); ++i) {
            ir::ValueId value{i};
            if (end_[i] <= start_[i] || !shapes_.shape(value).varying()) {
                continue;
            }
            // Masks live in registers of their own on AVX-512 and are short-lived elsewhere.
            if (kernel_.type(value) == ir::Type::kBool) {
                continue;
            }
            auto weight = static_cast<int32_t>(ir::BitWidth(kernel_.type(value)) > 32 ? 2 : 1);
            change[start_[i]] += weight;
            change[end_[i]] -= weight;
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
    void Visit(ir::BlockId block) {
        for (ir::ValueId param : kernel_.block(block).params) {
            start_[param.index] = position_;
        }
        for (ir::InstId id : kernel_.block(block).insts) {
            const ir::Instruction& inst = kernel_.inst(id);
            ++position_;
            for (ir::ValueId operand : inst.operands) {
                Use(operand);
            }
            if (inst.op == ir::Op::kLoop) {
                divergent_loop_ |= shapes_.facts(id).divergent;
                loops_.push_back({position_, {}});
            }
            for (ir::BlockId child : inst.blocks) {
                Visit(child);
            }
            if (inst.op == ir::Op::kLoop) {
                Loop loop = std::move(loops_.back());
                loops_.pop_back();
                for (ir::ValueId value : loop.outside) {
                    Use(value);
                }
            }
            for (ir::ValueId result : inst.results) {
                start_[result.index] = position_;
            }
        }
    }

    void Use(ir::ValueId value) {
        end_[value.index] = std::max(end_[value.index], position_);
        if (!loops_.empty() && start_[value.index] < loops_.back().start) {
            loops_.back().outside.push_back(value);
        }
    }

    struct Loop {
        uint32_t start;
        std::vector<ir::ValueId> outside;
    };
    const ir::Kernel& kernel_;
    const ShapeAnalysis& shapes_;
    std::vector<uint32_t> start_;
    std::vector<uint32_t> end_;
    std::vector<Loop> loops_;
    uint32_t position_ = 0;
    bool divergent_loop_ = false;
};

}  // namespace

RegisterPressure EstimatePressure(const ir::Kernel& kernel, const ShapeAnalysis& shapes) {
    return LiveRanges(kernel, shapes).Measure();
}

}  // namespace fornax::kernel

#include "compiler/kernel/analysis/matrix_views.h"

#include <algorithm>
#include <span>
#include <vector>

#include "compiler/kernel/ir/matrix.h"

namespace fornax::kernel {

using ir::Op;

namespace {

class Finder {
  public:
    explicit Finder(const ir::Kernel& kernel) : kernel_(kernel), unserved_(kernel.num_values(), 0) {
        for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
            for (ir::ValueId operand : kernel.inst(ir::InstId{i}).operands) {
                ++unserved_[operand.value()];
            }
        }
        for (uint32_t i = 0; i < kernel.num_blocks(); ++i) {
            VisitBlock(kernel.block(ir::BlockId{i}));
        }
        FindUnused();
    }
    MatrixViews Take() { return std::move(found_); }

  private:
    void VisitBlock(const ir::Block& block) {
        loaded_.clear();
        for (ir::InstId id : block.insts) {
            const ir::Instruction& inst = kernel_.inst(id);
            if (ir::MayWriteBuffers(inst)) {
                loaded_.clear();
            } else if (inst.op == Op::kMatrixLoad) {
                loaded_.insert(id.value());
                loads_.push_back(id);
            } else if (inst.op == Op::kMatrixTranspose) {
                transposes_.push_back(id);
            } else if (inst.op == Op::kMatrixMulAdd &&
                       ir::MatrixFormatOf(kernel_, inst) == hal::MatrixFormat::kF32) {
                VisitMma(inst);
            }
        }
    }
    void VisitMma(const ir::Instruction& mma) {
        const size_t count = mma.results.size();
        std::array<MatrixViews::View, 2> views;
        for (size_t i = 0; i < 2; ++i) {
            const auto values = std::span(mma.operands).subspan(i * count, count);
            views[i] = ViewOf(values, i == 1);
            for (size_t k = 0; views[i].load.valid() && k < count; ++k) {
                --unserved_[values[k].value()];
            }
        }
        if (views[0].load.valid() || views[1].load.valid()) {
            found_.mmas[mma.results[0].value()] = views;
        }
    }
    MatrixViews::View ViewOf(std::span<const ir::ValueId> values, bool is_b) const {
        MatrixViews::View view;
        const ir::Instruction* made = kernel_.Definition(values[0]);
        if (made && made->op == Op::kMatrixTranspose && !is_b &&
            std::ranges::equal(values, made->results)) {
            view.columns = true;
            values = made->operands;
            made = kernel_.Definition(values[0]);
        }
        if (made && made->op == Op::kMatrixLoad &&
            loaded_.contains(kernel_.value(values[0]).inst.value()) &&
            std::ranges::equal(values, made->results)) {
            view.load = kernel_.value(values[0]).inst;
        }
        return view;
    }
    void FindUnused() {
        const auto unused = [&](ir::InstId id) {
            return std::ranges::all_of(kernel_.inst(id).results, [&](ir::ValueId result) {
                return unserved_[result.value()] == 0;
            });
        };
        for (ir::InstId id : transposes_) {
            if (!unused(id)) {
                continue;
            }
            found_.unused.insert(id.value());
            for (ir::ValueId operand : kernel_.inst(id).operands) {
                --unserved_[operand.value()];
            }
        }
        for (ir::InstId id : loads_) {
            if (unused(id)) {
                found_.unused.insert(id.value());
            }
        }
    }

    const ir::Kernel& kernel_;
    std::vector<uint32_t> unserved_;  // by value: uses that need it as a value
    std::set<uint32_t> loaded_;       // loads of the block whose memory is as it was
    std::vector<ir::InstId> loads_;
    std::vector<ir::InstId> transposes_;
    MatrixViews found_;
};

}  // namespace

MatrixViews FindMatrixViews(const ir::Kernel& kernel) {
    return Finder(kernel).Take();
}

}  // namespace fornax::kernel

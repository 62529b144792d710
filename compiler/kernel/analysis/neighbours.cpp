#include "compiler/kernel/analysis/neighbours.h"

#include <algorithm>
#include <set>

namespace fornax::kernel {

using ir::Op;

namespace {

constexpr size_t kMaxValues = 64;

class Finder {
  public:
    Finder(const ir::Kernel& kernel, const ShapeAnalysis& shapes)
        : kernel_(kernel), shapes_(shapes) {}

    // The value may grow by `step` from lane to lane.
    bool MayStep(ir::ValueId value, uint64_t step) {
        if (!shapes_.shape(value).varying())
            return true;  // a part of a sum that does not change, or another pattern
        const ir::Instruction* inst = kernel_.Definition(value);
        if (!inst)
            return true;  // carried by a loop
        uint64_t factor = 0;
        switch (inst->op) {
            case Op::kIAdd:
                return MayStep(inst->operands[0], step) && MayStep(inst->operands[1], step);
            case Op::kIMul:
                if (!kernel_.IsConst(inst->operands[1], &factor))
                    break;
                return factor != 0 && step % factor == 0 &&
                       MayStep(inst->operands[0], step / factor);
            case Op::kShl:
                if (!kernel_.IsConst(inst->operands[1], &factor))
                    break;
                return factor < 32 && step % (uint64_t{1} << factor) == 0 &&
                       MayStep(inst->operands[0], step >> factor);
            case Op::kZExt:
            case Op::kSExt:
            case Op::kTrunc:
            case Op::kBitcast:
                return MayStep(inst->operands[0], step);
            default:
                break;
        }
        return IsComputed(value);
    }

  private:
    // From the invocation's number and what is the same for all lanes.
    bool IsComputed(ir::ValueId value) {
        if (!shapes_.shape(value).varying() || !seen_.insert(value.index).second)
            return true;
        if (seen_.size() > kMaxValues)
            return false;
        const ir::Instruction* inst = kernel_.Definition(value);
        if (!inst || inst->op == Op::kBuiltin)
            return true;
        if (inst->op == Op::kIf)
            return IsComputed(inst->operands[0]) && AreComputed(*inst, value);
        if (!ir::HasProperty(inst->op, ir::kPure))
            return false;
        for (ir::ValueId operand : inst->operands) {
            if (!IsComputed(operand))
                return false;
        }
        return true;
    }

    // What the branches of an if yield as its result `value`.
    bool AreComputed(const ir::Instruction& branch, ir::ValueId value) {
        const auto& results = branch.results;
        const auto index =
            static_cast<size_t>(std::find(results.begin(), results.end(), value) - results.begin());
        return std::all_of(branch.blocks.begin(), branch.blocks.end(), [&](ir::BlockId block) {
            const ir::Instruction& last = kernel_.inst(kernel_.block(block).insts.back());
            return last.op == Op::kYield && IsComputed(last.operands[index]);
        });
    }

    const ir::Kernel& kernel_;
    const ShapeAnalysis& shapes_;
    std::set<uint32_t> seen_;
};

}  // namespace

bool MayBeNeighbours(const ir::Kernel& kernel,
                     const ShapeAnalysis& shapes,
                     ir::ValueId offset,
                     uint64_t bytes) {
    return shapes.lanes() > 1 && shapes.shape(offset).varying() &&
           Finder(kernel, shapes).MayStep(offset, bytes);
}

}  // namespace fornax::kernel

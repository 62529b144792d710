#include "compiler/kernel/analysis/matrix_accumulators.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "compiler/kernel/ir/matrix.h"

namespace fornax::kernel {

using ir::Op;

namespace {

class Finder {
  public:
    explicit Finder(const ir::Kernel& kernel) : kernel_(kernel), uses_(kernel.num_values(), 0) {
        for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
            for (ir::ValueId operand : kernel.inst(ir::InstId{i}).operands) {
                ++uses_[operand.value()];
            }
        }
        for (uint32_t i = 0; i < kernel.num_blocks(); ++i) {
            VisitBlock(kernel.block(ir::BlockId{i}));
        }
    }
    MatrixAccumulators Take() { return std::move(found_); }

  private:
    void VisitBlock(const ir::Block& block) {
        insts_ = &block.insts;
        positions_.clear();
        for (size_t at = 0; at < block.insts.size(); ++at) {
            positions_[block.insts[at].value()] = at;
        }
        for (size_t at = 0; at < block.insts.size(); ++at) {
            const ir::Instruction& inst = kernel_.inst(block.insts[at]);
            std::vector<ir::InstId> accesses;
            if (inst.op != Op::kMatrixMulAdd) {
                continue;
            }
            if (!StaysInPlace(inst, at, accesses)) {
                Link(inst, at);
                continue;
            }
            found_.mmas[inst.results[0].value()] = {local_, first_};
            for (ir::InstId access : accesses) {
                found_.accesses.insert(access.value());
            }
        }
    }
    // The MMA goes on with a chain if its accumulator is the result of another.
    void Link(const ir::Instruction& mma, size_t at) {
        const size_t count = mma.results.size();
        const std::span<const ir::ValueId> accumulator(mma.operands.begin() + 2 * count, count);
        const ir::ValueId first = accumulator[0];
        const auto before = positions_.find(kernel_.value(first).inst.value());
        if (!kernel_.value(first).inst.valid() || before == positions_.end() ||
            found_.mmas.contains(first.value()) || (mma.imm & ir::kMatrixSaturating) != 0) {
            return;
        }
        const ir::Instruction& other = At(before->second);
        if (other.op != Op::kMatrixMulAdd || other.imm != mma.imm ||
            !std::ranges::equal(accumulator, other.results) ||
            kernel_.type(other.operands[0]) != kernel_.type(mma.operands[0]) ||
            std::ranges::any_of(accumulator,
                                [&](ir::ValueId value) { return uses_[value.value()] != 1; })) {
            return;
        }
        for (size_t i = before->second; i < at; ++i) {
            if (MayLeave(At(i))) {
                return;
            }
        }
        MatrixAccumulators::InChain& last =
            found_.chains.try_emplace(first.value(), first.value(), true).first->second;
        last.ends = false;
        found_.chains[mma.results[0].value()] = {.chain = last.chain, .ends = true};
    }
    const ir::Instruction& At(size_t position) const { return kernel_.inst((*insts_)[position]); }

    bool StaysInPlace(const ir::Instruction& mma, size_t at, std::vector<ir::InstId>& accesses) {
        if (mma.imm & ir::kMatrixSaturating) {
            return false;
        }
        const size_t count = mma.results.size();
        size_t begin = at;
        for (size_t i = 0; i < count; ++i) {
            const ir::Value& value = kernel_.value(mma.operands[2 * count + i]);
            const auto position =
                value.inst.valid() ? positions_.find(value.inst.value()) : positions_.end();
            if (position == positions_.end()) {
                return false;
            }
            const ir::Instruction& load = kernel_.inst(value.inst);
            uint64_t index = 0;
            if (load.op != Op::kLoadLocal || !kernel_.IsConst(load.operands[0], &index)) {
                return false;
            }
            if (i == 0) {
                local_ = load.imm;
                first_ = index;
            }
            if (load.imm != local_ || index != first_ + i) {
                return false;
            }
            begin = std::min(begin, position->second);
            if (uses_[mma.operands[2 * count + i].value()] == 1) {
                accesses.push_back(value.inst);
            }
        }
        if (first_ % count != 0 || first_ + count > kernel_.locals[local_].count) {
            return false;
        }
        for (size_t i = begin; i < at; ++i) {
            const ir::Instruction& between = At(i);
            if (MayLeave(between) || (between.op == Op::kStoreLocal && Touches(between, count))) {
                return false;
            }
        }
        // Each result is stored once, and nothing sees the place before.
        size_t stored = 0;
        for (size_t i = at + 1; i < insts_->size() && stored < count; ++i) {
            const ir::Instruction& after = At(i);
            if (MayLeave(after) || (after.op == Op::kLoadLocal && Touches(after, count))) {
                return false;
            }
            if (after.op != Op::kStoreLocal || !Touches(after, count)) {
                continue;
            }
            uint64_t index = 0;
            if (!kernel_.IsConst(after.operands[0], &index) || index < first_ ||
                after.operands[1] != mma.results[index - first_] ||
                uses_[after.operands[1].value()] != 1) {
                return false;
            }
            accesses.push_back((*insts_)[i]);
            ++stored;
        }
        return stored == count;
    }
    // Control may go elsewhere, or come from there.
    static bool MayLeave(const ir::Instruction& inst) {
        return ir::HasProperty(inst.op, ir::kRegions | ir::kTerminator) || inst.op == Op::kBarrier;
    }
    bool Touches(const ir::Instruction& access, size_t count) const {
        uint64_t index = 0;
        return access.imm == local_ && (!kernel_.IsConst(access.operands[0], &index) ||
                                        (index >= first_ && index < first_ + count));
    }

    const ir::Kernel& kernel_;
    const std::vector<ir::InstId>* insts_ = nullptr;
    std::map<uint32_t, size_t> positions_;
    uint64_t local_ = 0;
    uint64_t first_ = 0;
    std::vector<uint32_t> uses_;  // by value
    MatrixAccumulators found_;
};

}  // namespace

MatrixAccumulators FindMatrixAccumulators(const ir::Kernel& kernel) {
    return Finder(kernel).Take();
}

}  // namespace fornax::kernel

#include "compiler/kernel/transform/division_forms.h"

#include <algorithm>

namespace fornax::kernel {

using namespace ir;

namespace {

class Finder {
  public:
    explicit Finder(const Kernel& kernel) : kernel_(kernel) {}

    std::optional<Division> FindDivision(InstId id) const {
        const Instruction& inst = kernel_.inst(id);
        switch (inst.op) {
            case Op::kUDiv:
            case Op::kSDiv:
            case Op::kURem:
            case Op::kSRem:
                return Division{inst.results[0], inst.operands[0], inst.operands[1], inst.op};
            case Op::kIf:
                return BehindComparison(inst);
            case Op::kScope:
                return BehindPowerOfTwo(inst, id);
            default:
                return {};
        }
    }

    // if (a < b) 0 else a / b; likewise with remainders, where it is a.
    std::optional<Division> BehindComparison(const Instruction& inst) const {
        const Instruction* test = kernel_.Definition(inst.operands[0]);
        if (inst.results.size() != 1 || !test || (test->op != Op::kULt && test->op != Op::kULe)) {
            return {};
        }
        const bool less = test->op == Op::kULt;
        const BlockId divides = inst.blocks[less ? 1 : 0];
        const BlockId spares = inst.blocks[less ? 0 : 1];
        if (kernel_.block(divides).insts.size() != 2 || Last(divides).op != Op::kYield ||
            !OnlyYields(spares)) {
            return {};
        }
        const InstId id = kernel_.block(divides).insts[0];
        const Instruction& division = kernel_.inst(id);
        if ((division.op != Op::kUDiv && division.op != Op::kURem) ||
            Last(divides).operands[0] != division.results[0] ||
            division.operands[0] != test->operands[less ? 0 : 1] ||
            division.operands[1] != test->operands[less ? 1 : 0]) {
            return {};
        }
        const ValueId spared = Last(spares).operands[0];
        uint64_t bits = 1;
        const bool same = division.op == Op::kUDiv ? kernel_.IsConst(spared, &bits) && bits == 0
                                                   : spared == division.operands[0];
        if (!same) {
            return {};
        }
        return Division{inst.results[0], division.operands[0], division.operands[1], division.op};
    }

    // scope { if ((b & (b - 1)) == 0) exit a & (b - 1); yield a % b }
    std::optional<Division> BehindPowerOfTwo(const Instruction& scope, InstId id) const {
        const auto& insts = kernel_.block(scope.blocks[0]).insts;
        constexpr size_t kMost = 8;
        const Instruction& yield = Last(scope.blocks[0]);
        if (scope.results.size() != 1 || insts.size() > kMost || yield.op != Op::kYield) {
            return {};
        }
        const Instruction* division = kernel_.Definition(yield.operands[0]);
        const Instruction* branch = nullptr;
        for (InstId inner : insts) {
            const Instruction& inst = kernel_.inst(inner);
            if (inst.op == Op::kIf && !branch) {
                branch = &inst;
            } else if (inner != insts.back() && !HasProperty(inst.op, kPure)) {
                return {};
            }
        }
        if (!division || division->op != Op::kURem || !branch || !OnlyYields(branch->blocks[1])) {
            return {};
        }
        const Instruction& exit = Last(branch->blocks[0]);
        if (exit.op != Op::kExit || exit.target != id ||
            !std::ranges::all_of(kernel_.block(branch->blocks[0]).insts, [&](InstId inner) {
                return kernel_.inst(inner).op == Op::kExit ||
                       HasProperty(kernel_.inst(inner).op, kPure);
            })) {
            return {};
        }
        const ValueId a = division->operands[0];
        const ValueId b = division->operands[1];
        auto is_less_one = [&](ValueId value) {
            const Instruction* sum = kernel_.Definition(value);
            uint64_t bits = 0;
            return sum && sum->op == Op::kIAdd && sum->operands[0] == b &&
                   kernel_.IsConst(sum->operands[1], &bits) &&
                   bits == ~uint64_t{0} >> (64 - BitWidth(kernel_.type(b)));
        };
        auto is_masked = [&](ValueId value, ValueId of) {
            const Instruction* masked = kernel_.Definition(value);
            return masked && masked->op == Op::kAnd &&
                   ((masked->operands[0] == of && is_less_one(masked->operands[1])) ||
                    (masked->operands[1] == of && is_less_one(masked->operands[0])));
        };
        const Instruction* test = kernel_.Definition(branch->operands[0]);
        uint64_t zero = 1;
        if (!test || test->op != Op::kIEq || !kernel_.IsConst(test->operands[1], &zero) ||
            zero != 0 || !is_masked(test->operands[0], b) || !is_masked(exit.operands[0], a)) {
            return {};
        }
        return Division{scope.results[0], a, b, Op::kURem};
    }

  private:
    const Instruction& Last(BlockId block) const {
        return kernel_.inst(kernel_.block(block).insts.back());
    }
    bool OnlyYields(BlockId block) const {
        return kernel_.block(block).insts.size() == 1 && Last(block).op == Op::kYield;
    }

    const Kernel& kernel_;
};

}  // namespace

std::optional<Division> FindDivision(const Kernel& kernel, InstId id) {
    return Finder(kernel).FindDivision(id);
}

}  // namespace fornax::kernel

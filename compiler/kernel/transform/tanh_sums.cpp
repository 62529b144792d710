// 1 + tanh(x), which GELU and sigmoids written with tanh are made of, becomes 2 / (1 + exp(-2 x)).
//
// It is the same number, and closer to it where tanh nears -1 and the sum cancels. With AVX-512 it
// takes two thirds of the operations, because 2^y is an instruction there but for a polynomial.
#include <algorithm>
#include <bit>
#include <utility>

#include "compiler/kernel/transform/cleanup.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {

using namespace ir;

namespace {

constexpr float kMinusTwoLog2E = -2.8853900817779268f;

class TanhSums {
  public:
    explicit TanhSums(Kernel& kernel) : kernel_(kernel), uses_(kernel.num_values()) {}

    void Run() {
        CountUses(kernel_.body);
        VisitBlock(kernel_.body);
        if (found_) {
            EliminateDeadCode(kernel_);
        }
    }

  private:
    void CountUses(BlockId block) {
        for (InstId id : kernel_.block(block).insts) {
            const Instruction& inst = kernel_.inst(id);
            for (ValueId operand : inst.operands) {
                ++uses_[operand.value()];
            }
            for (BlockId child : inst.blocks) {
                CountUses(child);
            }
        }
    }

    void VisitBlock(BlockId block) {
        std::vector<InstId> insts = std::exchange(kernel_.block(block).insts, {});
        std::vector<InstId> out;
        out.reserve(insts.size());
        for (InstId id : insts) {
            if (const ValueId x = ArgumentOf(kernel_.inst(id)); x.valid()) {
                Replace(id, x, out);
            }
            out.push_back(id);
            for (BlockId child : std::vector(kernel_.inst(id).blocks)) {
                VisitBlock(child);
            }
        }
        kernel_.block(block).insts = std::move(out);
    }

    // x, if it is 1 + tanh(x) and may be taken together.
    ValueId ArgumentOf(const Instruction& sum) const {
        if (sum.op != Op::kFAdd || (sum.flags & kNoContraction) != 0 ||
            kernel_.type(sum.results[0]) != Type::kF32) {
            return {};
        }
        for (size_t side = 0; side < 2; ++side) {
            const ValueId value = sum.operands[side];
            const Instruction* tanh = kernel_.Definition(value);
            uint64_t bits = 0;
            if (tanh && tanh->op == Op::kTanh && (tanh->flags & kNoContraction) == 0 &&
                uses_[value.value()] == 1 && kernel_.IsConst(sum.operands[1 - side], &bits) &&
                bits == std::bit_cast<uint32_t>(1.0f)) {
                return tanh->operands[0];
            }
        }
        return {};
    }

    void Replace(InstId id, ValueId x, std::vector<InstId>& before) {
        auto make = [&](Op op, std::initializer_list<ValueId> operands, uint64_t imm = 0) {
            constexpr Type kType = Type::kF32;
            const InstId made =
                kernel_.NewInst(op, {operands.begin(), operands.size()}, {&kType, 1});
            Instruction& inst = kernel_.inst(made);
            inst.imm = imm;
            inst.origin = kernel_.inst(id).origin;
            before.push_back(made);
            return inst.results[0];
        };
        auto constant = [&](float value) {
            return make(Op::kConst, {}, std::bit_cast<uint32_t>(value));
        };
        const ValueId exponent = make(Op::kFMul, {x, constant(kMinusTwoLog2E)});
        const ValueId power = make(Op::kExp2, {exponent});
        const ValueId divisor = make(Op::kFAdd, {power, constant(1.0f)});
        const ValueId two = constant(2.0f);
        Instruction& quotient = kernel_.inst(id);
        quotient.op = Op::kFDiv;
        quotient.operands = {two, divisor};
        found_ = true;
    }

    Kernel& kernel_;
    std::vector<uint32_t> uses_;  // by value
    bool found_ = false;
};

}  // namespace

void ReplaceTanhSums(Kernel& kernel) {
    TanhSums(kernel).Run();
}

}  // namespace fornax::kernel

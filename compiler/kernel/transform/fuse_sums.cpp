// Products that go into sums become multiply-adds, and what is not fused here stays apart.
//
// Two kinds of sums cost less as a product and a sum: a product added to itself, and one that is
// the same in each iteration of a loop, which is computed before the loop. Multiply-adds of the
// program are parted there too: GLSL.std.450 Fma may take two operations unless it is decorated
// with NoContraction.
//
// The code generator could find the same, but not the same in every form of a kernel: unrolling,
// folding and merging change who uses a product. The tiers are made of different forms
// and must round alike, so this is decided once, before they part.
#include <algorithm>
#include <array>
#include <utility>

#include "compiler/kernel/transform/cleanup.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {

using namespace ir;

namespace {

class SumFuser {
  public:
    explicit SumFuser(Kernel& kernel)
        : kernel_(kernel),
          places_(kernel.num_values()),
          loops_(kernel.num_values()),
          uses_(kernel.num_values()),
          in_sums_(kernel.num_values()) {}

    void Run() {
        Survey(kernel_.body, {});
        VisitBlock(kernel_.body);
        if (fused_) {
            EliminateDeadCode(kernel_);
        }
    }

  private:
    // Where a value is made. With barriers, factors must not outlive them in a product's place.
    struct Place {
        BlockId block;
        uint32_t epoch = 0;  // barriers before it in the text
        friend bool operator==(const Place&, const Place&) = default;
    };
    struct Product {
        ValueId a;
        ValueId b;
        bool negated = false;
    };
    // The innermost around what is visited, and the list of instructions that it will end.
    struct Loop {
        InstId id;
        std::vector<InstId>* before = nullptr;
    };

    static bool IsSum(const Instruction& inst) {
        return inst.op == Op::kFAdd || inst.op == Op::kFSub;
    }
    static bool MayFuse(const Instruction& sum) {
        return (sum.flags & kNoContraction) == 0 && sum.operands[0] != sum.operands[1];
    }

    void Survey(BlockId block, InstId loop) {
        for (ValueId param : kernel_.block(block).params) {
            loops_[param.value()] = loop;
        }
        for (InstId id : kernel_.block(block).insts) {
            const Instruction& inst = kernel_.inst(id);
            epoch_ += inst.op == Op::kBarrier;
            const bool fusing = IsSum(inst) && MayFuse(inst);
            for (ValueId operand : inst.operands) {
                ++uses_[operand.value()];
                in_sums_[operand.value()] += fusing;
            }
            for (ValueId result : inst.results) {
                places_[result.value()] = {block, epoch_};
                loops_[result.value()] = loop;
            }
            for (BlockId child : inst.blocks) {
                Survey(child, inst.op == Op::kLoop ? id : loop);
            }
        }
    }

    // In place; lists grow by negations, and before loops by products.
    void VisitBlock(BlockId block) {
        std::vector<InstId> insts = std::exchange(kernel_.block(block).insts, {});
        std::vector<InstId> out;
        out.reserve(insts.size());
        for (InstId id : insts) {
            if (IsSum(kernel_.inst(id)) && !(MayFuse(kernel_.inst(id)) && Fuse(id, out))) {
                kernel_.inst(id).flags |= kNoContraction;
            } else if (kernel_.inst(id).op == Op::kFma) {
                Part(id);
            }
            const bool is_loop = kernel_.inst(id).op == Op::kLoop;
            const Loop outer = std::exchange(loop_, is_loop ? Loop{id, &out} : loop_);
            // Copied, because negations and products are new instructions.
            for (BlockId child : std::vector(kernel_.inst(id).blocks)) {
                VisitBlock(child);
            }
            loop_ = outer;
            out.push_back(id);
        }
        kernel_.block(block).insts = std::move(out);
    }

    // True if it did.
    bool Fuse(InstId id, std::vector<InstId>& before) {
        const Instruction sum = kernel_.inst(id);
        const bool subtract = sum.op == Op::kFSub;
        for (size_t side = 0; side < 2; ++side) {
            const Product product = ProductOf(sum.operands[side], sum.results[0]);
            if (!product.a.valid()) {
                continue;
            }
            ValueId addend = sum.operands[1 - side];
            if (!product.negated && IsInvariant(product, addend)) {
                const ValueId computed = BeforeLoop(product, sum);
                kernel_.inst(id).operands[side] = computed;
                fused_ = true;
                return false;
            }
            // a * b - c, or c - a * b.
            if (subtract && side == 0) {
                addend = Negate(addend, sum, before);
            }
            const bool negate = product.negated != (subtract && side == 1);
            const ValueId a = negate ? Negate(product.a, sum, before) : product.a;
            Instruction& inst = kernel_.inst(id);
            inst.op = Op::kFma;
            inst.operands = {a, product.b, addend};
            fused_ = true;
            return true;
        }
        return false;
    }

    // The factors, if all uses of the product are sums, or the one use is a negation in a sum.
    Product ProductOf(ValueId value, ValueId sum) const {
        Product product;
        const Instruction* inst = kernel_.Definition(value);
        if (inst && inst->op == Op::kFNeg && uses_[value.value()] == 1) {
            product.negated = true;
            value = inst->operands[0];
            inst = kernel_.Definition(value);
            if (uses_[value.value()] != 1) {
                return {};
            }
        }
        if (!inst || inst->op != Op::kFMul || (inst->flags & kNoContraction) != 0) {
            return {};
        }
        if (uses_[value.value()] > 1 && in_sums_[value.value()] != uses_[value.value()]) {
            return {};
        }
        if (epoch_ != 0 && places_[value.value()] != places_[sum.value()]) {
            return {};
        }
        product.a = inst->operands[0];
        product.b = inst->operands[1];
        return product;
    }

    // A multiply-add of the program.
    void Part(InstId id) {
        const Instruction fma = kernel_.inst(id);
        if ((fma.flags & kNoContraction) != 0) {
            return;
        }
        const Product product{fma.operands[0], fma.operands[1]};
        const ValueId addend = fma.operands[2];
        const Instruction* other = kernel_.Definition(addend);
        ValueId computed;
        if (other && other->op == Op::kFMul &&
            std::ranges::is_permutation(other->operands, std::array{product.a, product.b})) {
            computed = addend;
        } else if (IsInvariant(product, addend)) {
            computed = BeforeLoop(product, fma);
            fused_ = true;
        } else {
            return;
        }
        Instruction& sum = kernel_.inst(id);
        sum.op = Op::kFAdd;
        sum.operands = {computed, addend};
        sum.flags |= kNoContraction;
    }

    // True if the factors are made before the innermost loop and the addend inside of it. Halves
    // would lose digits; a product that is kept across barriers takes memory.
    bool IsInvariant(const Product& product, ValueId addend) const {
        auto inside = [&](ValueId value) {
            // Negations are made beside their use.
            return value.value() >= loops_.size() || loops_[value.value()] == loop_.id;
        };
        const Type type = kernel_.type(addend);
        return loop_.id.valid() && epoch_ == 0 && (type == Type::kF32 || type == Type::kF64) &&
               !inside(product.a) && !inside(product.b) && inside(addend);
    }

    ValueId BeforeLoop(const Product& product, const Instruction& sum) {
        const std::array factors = {product.a, product.b};
        const Type type = kernel_.type(product.a);
        const InstId id = kernel_.NewInst(Op::kFMul, factors, {&type, 1});
        kernel_.inst(id).flags |= kNoContraction;
        kernel_.inst(id).origin = sum.origin;
        loop_.before->push_back(id);
        return kernel_.inst(id).results[0];
    }

    ValueId Negate(ValueId value, const Instruction& sum, std::vector<InstId>& before) {
        const Type type = kernel_.type(value);
        const InstId id = kernel_.NewInst(Op::kFNeg, {&value, 1}, {&type, 1});
        kernel_.inst(id).origin = sum.origin;
        before.push_back(id);
        return kernel_.inst(id).results[0];
    }

    Kernel& kernel_;
    std::vector<Place> places_;      // by value
    std::vector<InstId> loops_;      // by value: the innermost loop around its definition
    std::vector<uint32_t> uses_;     // by value
    std::vector<uint32_t> in_sums_;  // by value: uses as operands of sums that may be fused
    Loop loop_;
    uint32_t epoch_ = 0;
    bool fused_ = false;
};

}  // namespace

void FuseSums(Kernel& kernel) {
    SumFuser(kernel).Run();
}

}  // namespace fornax::kernel

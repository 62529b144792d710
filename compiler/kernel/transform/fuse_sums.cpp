// Products that go into sums become multiply-adds, and what is not fused here stays apart.
//
// The code generator could find the same, but not the same in every form of a kernel: unrolling,
// folding and merging change who uses a product. The tiers are made of different forms
// and must round alike, so this is decided once, before they part.
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
          uses_(kernel.num_values()),
          in_sums_(kernel.num_values()) {}

    void Run() {
        Survey(kernel_.body);
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

    static bool IsSum(const Instruction& inst) {
        return inst.op == Op::kFAdd || inst.op == Op::kFSub;
    }
    static bool MayFuse(const Instruction& sum) {
        return (sum.flags & kNoContraction) == 0 && sum.operands[0] != sum.operands[1];
    }

    void Survey(BlockId block) {
        for (InstId id : kernel_.block(block).insts) {
            const Instruction& inst = kernel_.inst(id);
            epoch_ += inst.op == Op::kBarrier;
            const bool fusing = IsSum(inst) && MayFuse(inst);
            for (ValueId operand : inst.operands) {
                ++uses_[operand.index];
                in_sums_[operand.index] += fusing;
            }
            for (ValueId result : inst.results) {
                places_[result.index] = {block, epoch_};
            }
            for (BlockId child : inst.blocks) {
                Survey(child);
            }
        }
    }

    // In place; lists grow by negations only.
    void VisitBlock(BlockId block) {
        std::vector<InstId> insts = std::exchange(kernel_.block(block).insts, {});
        std::vector<InstId> out;
        out.reserve(insts.size());
        for (InstId id : insts) {
            if (IsSum(kernel_.inst(id)) && !(MayFuse(kernel_.inst(id)) && Fuse(id, out))) {
                kernel_.inst(id).flags |= kNoContraction;
            }
            out.push_back(id);
            // Copied, because negations inside are new instructions.
            for (BlockId child : std::vector(kernel_.inst(id).blocks)) {
                VisitBlock(child);
            }
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
            // a * b - c, or c - a * b.
            ValueId addend = sum.operands[1 - side];
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
        if (inst && inst->op == Op::kFNeg && uses_[value.index] == 1) {
            product.negated = true;
            value = inst->operands[0];
            inst = kernel_.Definition(value);
            if (uses_[value.index] != 1) {
                return {};
            }
        }
        if (!inst || inst->op != Op::kFMul || (inst->flags & kNoContraction) != 0) {
            return {};
        }
        if (uses_[value.index] > 1 && in_sums_[value.index] != uses_[value.index]) {
            return {};
        }
        if (epoch_ != 0 && places_[value.index] != places_[sum.index]) {
            return {};
        }
        product.a = inst->operands[0];
        product.b = inst->operands[1];
        return product;
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
    std::vector<uint32_t> uses_;     // by value
    std::vector<uint32_t> in_sums_;  // by value: uses as operands of sums that may be fused
    uint32_t epoch_ = 0;
    bool fused_ = false;
};

}  // namespace

void FuseSums(Kernel& kernel) {
    SumFuser(kernel).Run();
}

}  // namespace fornax::kernel

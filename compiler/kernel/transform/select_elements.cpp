// Small private arrays that lanes index differently become values.
//
// A vector's lanes can only index memory one by one, and what has just been stored by rows does not
// reach loads by columns until it is in the cache. For few elements it is quicker to choose between
// all of them, and then they need no memory.
#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/transform/cleanup.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {

using namespace ir;

namespace {

constexpr uint32_t kMostElements = 4;
constexpr uint32_t kMostSelects = 256;  // of a kernel

class Selector {
  public:
    explicit Selector(Kernel& kernel) : kernel_(kernel), arrays_(kernel.locals.size()) {}

    bool Run() {
        Count(kernel_.body);
        uint32_t selects = 0;
        for (size_t i = 0; i < arrays_.size(); ++i) {
            const uint32_t count = kernel_.locals[i].count;
            const uint32_t more = arrays_[i].loads * (count - 1);
            arrays_[i].chosen = !arrays_[i].stored_anywhere && arrays_[i].loads != 0 &&
                                count <= kMostElements && selects + more <= kMostSelects;
            if (arrays_[i].chosen) {
                selects += more;
            }
            any_ |= arrays_[i].chosen;
        }
        if (!any_) {
            return false;
        }
        RewriteBlock(kernel_.body);
        kernel_.ReplaceUses(map_);
        return true;
    }

  private:
    struct Array {
        uint32_t loads = 0;            // of elements that are known at run time only
        bool stored_anywhere = false;  // some store goes to such an element
        bool chosen = false;
    };

    void Count(BlockId block) {
        for (InstId id : kernel_.block(block).insts) {
            const Instruction& inst = kernel_.inst(id);
            if ((inst.op == Op::kLoadLocal || inst.op == Op::kStoreLocal) &&
                !kernel_.IsConst(inst.operands[0])) {
                Array& array = arrays_[inst.imm];
                array.loads += inst.op == Op::kLoadLocal ? 1 : 0;
                array.stored_anywhere |= inst.op == Op::kStoreLocal;
            }
            for (BlockId inner : inst.blocks) {
                Count(inner);
            }
        }
    }

    void RewriteBlock(BlockId block) {
        std::vector<InstId> old = std::move(kernel_.block(block).insts);
        kernel_.block(block).insts.clear();
        Builder builder(kernel_, block);
        for (InstId id : old) {
            for (BlockId inner : std::vector(kernel_.inst(id).blocks)) {
                RewriteBlock(inner);
            }
            const Instruction& inst = kernel_.inst(id);
            if (inst.op != Op::kLoadLocal || kernel_.IsConst(inst.operands[0]) ||
                !arrays_[inst.imm].chosen) {
                kernel_.block(block).insts.push_back(id);
                continue;
            }
            const ValueId result = inst.results[0];
            const ValueId index = inst.operands[0];
            const uint64_t local = inst.imm;
            const Type type = kernel_.type(result);
            builder.SetOrigin(inst.origin);
            // An index outside reads any value (ir/ops.def).
            ValueId value;
            for (uint32_t element = 0; element < kernel_.locals[local].count; ++element) {
                const ValueId number = builder.ConstI32(element);
                const ValueId at = builder.Emit(Op::kLoadLocal, type, {number}, local);
                if (!value.valid()) {
                    value = at;
                    continue;
                }
                const ValueId here = builder.Emit(Op::kIEq, Type::kBool, {index, number});
                value = builder.Emit(Op::kSelect, type, {here, at, value});
            }
            map_.resize(kernel_.num_values());
            map_[result.value()] = value;
        }
    }

    Kernel& kernel_;
    std::vector<Array> arrays_;  // by local
    bool any_ = false;
    std::vector<ValueId> map_;
};

}  // namespace

bool SelectElements(Kernel& kernel) {
    return !kernel.locals.empty() && Selector(kernel).Run();
}

}  // namespace fornax::kernel

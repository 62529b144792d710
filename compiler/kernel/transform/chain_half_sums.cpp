// Sums of f16 that go from one matrix product straight to the next (passes.h).
#include <algorithm>
#include <vector>

#include "compiler/kernel/ir/matrix.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {

using namespace ir;

namespace {

// What a sum was before it became f16 and f32 again; invalid if it did not.
ValueId BeforeRounding(const Kernel& kernel, ValueId sum) {
    const Instruction* wide = kernel.Definition(sum);
    if (!wide || wide->op != Op::kFConvert) {
        return {};
    }
    const Instruction* narrow = kernel.Definition(wide->operands[0]);
    if (!narrow || narrow->op != Op::kFConvert || kernel.type(narrow->results[0]) != Type::kF16 ||
        kernel.type(narrow->operands[0]) != Type::kF32) {
        return {};
    }
    return narrow->operands[0];
}

}  // namespace

bool ChainHalfSums(Kernel& kernel) {
    bool any = false;
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        Instruction& product = kernel.inst(InstId{i});
        if (product.op != Op::kMatrixMulAdd || (product.imm & kMatrixHalfSums) == 0) {
            continue;
        }
        const size_t count = product.results.size();
        std::vector<ValueId> sums;
        for (size_t k = 2 * count; k < product.operands.size(); ++k) {
            const ValueId sum = BeforeRounding(kernel, product.operands[k]);
            const Instruction* from = sum.valid() ? kernel.Definition(sum) : nullptr;
            if (!from || from->op != Op::kMatrixMulAdd || (from->imm & kMatrixHalfSums) == 0 ||
                from->results[sums.size()] != sum ||
                (!sums.empty() && kernel.Definition(sums[0]) != from)) {
                break;
            }
            sums.push_back(sum);
        }
        if (sums.size() != count) {
            continue;
        }
        std::copy(sums.begin(), sums.end(),
                  product.operands.begin() + static_cast<std::ptrdiff_t>(2 * count));
        any = true;
    }
    return any;
}

}  // namespace fornax::kernel

// What a condition is made of.
#pragma once

#include <algorithm>
#include <vector>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel::ir {

// The values that a value is made of by those for which `splits(value, instruction)` is true. Each
// once, in the order of the operands, step by step. Time and size are bounded, whatever the kernel:
// what lies far from the value is not split.
template <typename Splits>
std::vector<ValueId> LeavesOf(const Kernel& kernel, ValueId root, Splits splits) {
    constexpr size_t kMostValues = 64;
    std::vector<ValueId> seen = {root};
    std::vector<ValueId> leaves;
    for (size_t i = 0; i < seen.size(); ++i) {
        const ValueId value = seen[i];
        const Instruction* inst = kernel.Definition(value);
        if (!inst || seen.size() >= kMostValues || !splits(value, *inst)) {
            leaves.push_back(value);
            continue;
        }
        for (ValueId operand : inst->operands) {
            if (std::ranges::find(seen, operand) == seen.end()) {
                seen.push_back(operand);
            }
        }
    }
    return leaves;
}

// Values that hold together exactly if the condition holds: what `and` joins, for those for which
// `splits(value)` is true. A part may be an `and` itself.
template <typename Splits>
std::vector<ValueId> PartsOfCondition(const Kernel& kernel, ValueId condition, Splits splits) {
    return LeavesOf(kernel, condition, [&](ValueId value, const Instruction& inst) {
        return inst.op == Op::kAnd && splits(value);
    });
}

inline std::vector<ValueId> PartsOfCondition(const Kernel& kernel, ValueId condition) {
    return PartsOfCondition(kernel, condition, [](ValueId) { return true; });
}

}  // namespace fornax::kernel::ir

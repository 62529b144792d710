#include "compiler/kernel/transform/bounds.h"

#include <algorithm>

#include "compiler/kernel/index/upper_bound.h"

namespace fornax::kernel {

namespace {

constexpr uint32_t kMaxDepth = 6;  // every path is followed

}  // namespace

uint64_t UpperBound(const ir::Kernel& kernel,
                    ir::ValueId value,
                    const KnownBounds& known,
                    uint32_t depth) {
    uint64_t bound = ~uint64_t{0} >> (64 - ir::BitWidth(kernel.type(value)));
    const ir::Instruction* inst = kernel.Definition(value);
    if (inst && depth <= kMaxDepth) {
        bound = UpperBoundOfResult(kernel, *inst, value, [&](size_t i) {
            return UpperBound(kernel, inst->operands[i], known, depth + 1);
        });
    }
    return value.value() < known.size() ? std::min(bound, known[value.value()]) : bound;
}

}  // namespace fornax::kernel

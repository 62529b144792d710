#include "compiler/kernel/transform/bounds.h"

#include <algorithm>
#include <bit>

namespace fornax::kernel {

using namespace ir;

namespace {

constexpr uint32_t kMaxDepth = 6;  // every path is followed

uint64_t BuiltinBound(const Kernel& kernel, BuiltinId builtin) {
    const auto& size = kernel.workgroup_size;
    uint64_t invocations = uint64_t{size[0]} * size[1] * size[2];
    uint64_t subgroup = kernel.subgroup_size;
    switch (builtin) {
        case BuiltinId::kLocalIdX:
        case BuiltinId::kLocalIdY:
        case BuiltinId::kLocalIdZ:
            return size[static_cast<size_t>(builtin) - static_cast<size_t>(BuiltinId::kLocalIdX)] -
                   1;
        case BuiltinId::kLocalIndex:
            return invocations - 1;
        case BuiltinId::kSubgroupLane:
            return std::min(subgroup, invocations) - 1;
        case BuiltinId::kSubgroupId:
            return (invocations - 1) / subgroup;
        case BuiltinId::kNumSubgroups:
            return (invocations + subgroup - 1) / subgroup;
        case BuiltinId::kSubgroupSize:
            return subgroup;
        default:
            return UINT32_MAX;
    }
}

// From the operation.
uint64_t BoundOfResult(const Kernel& kernel,
                       ValueId value,
                       const KnownBounds& known,
                       uint32_t depth) {
    uint32_t width = BitWidth(kernel.type(value));
    uint64_t all = ~uint64_t{0} >> (64 - width);
    const Instruction* inst = kernel.Definition(value);
    if (!inst || depth > kMaxDepth) {
        return all;
    }
    auto bound = [&](size_t i) { return UpperBound(kernel, inst->operands[i], known, depth + 1); };
    uint64_t constant = 0;
    bool by_constant = inst->operands.size() == 2 && kernel.IsConst(inst->operands[1], &constant);
    uint64_t result = all;
    switch (inst->op) {
        case Op::kConst:
            return inst->imm;
        case Op::kBuiltin:
            return BuiltinBound(kernel, static_cast<BuiltinId>(inst->imm));
        case Op::kAnd:
        case Op::kUMin:
            return std::min(bound(0), bound(1));
        case Op::kOr:
        case Op::kXor:
            return std::bit_ceil((bound(0) | bound(1)) / 2 + 1) * 2 - 1;
        case Op::kUMax:
            return std::max(bound(0), bound(1));
        case Op::kSelect:
            return std::max(bound(1), bound(2));
        case Op::kLShr:
            return by_constant && constant < width ? bound(0) >> constant : bound(0);
        case Op::kUDiv:
            return by_constant && constant != 0 ? bound(0) / constant : all;
        case Op::kURem:
            return by_constant && constant != 0 ? std::min(bound(0), constant - 1) : bound(0);
        case Op::kIAdd:
            return __builtin_add_overflow(bound(0), bound(1), &result) || result > all ? all
                                                                                       : result;
        case Op::kIMul:
            return __builtin_mul_overflow(bound(0), bound(1), &result) || result > all ? all
                                                                                       : result;
        case Op::kZExt:
            return bound(0);
        case Op::kTrunc:
            return std::min(bound(0), all);
        default:
            return all;
    }
}

}  // namespace

uint64_t UpperBound(const Kernel& kernel, ValueId value, const KnownBounds& known, uint32_t depth) {
    const uint64_t bound = BoundOfResult(kernel, value, known, depth);
    return value.index < known.size() ? std::min(bound, known[value.index]) : bound;
}

}  // namespace fornax::kernel

#include "compiler/kernel/index/upper_bound.h"

namespace fornax::kernel {

using ir::BuiltinId;

uint64_t UpperBoundOf(const ir::Kernel& kernel, BuiltinId builtin) {
    const auto& size = kernel.workgroup_size;
    const uint64_t invocations = uint64_t{size[0]} * size[1] * size[2];
    const uint64_t subgroup = kernel.subgroup_size;
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

std::optional<uint32_t> ValueInInvocation(const ir::Kernel& kernel,
                                          BuiltinId builtin,
                                          uint32_t index) {
    const auto& size = kernel.workgroup_size;
    const uint32_t subgroup = kernel.subgroup_size;
    switch (builtin) {
        case BuiltinId::kLocalIdX:
            return index % size[0];
        case BuiltinId::kLocalIdY:
            return index / size[0] % size[1];
        case BuiltinId::kLocalIdZ:
            return index / size[0] / size[1];
        case BuiltinId::kLocalIndex:
            return index;
        case BuiltinId::kSubgroupId:
            return index / subgroup;
        case BuiltinId::kSubgroupLane:
            return index % subgroup;
        case BuiltinId::kNumSubgroups:
        case BuiltinId::kSubgroupSize:
            return static_cast<uint32_t>(UpperBoundOf(kernel, builtin));
        default:
            return std::nullopt;
    }
}

}  // namespace fornax::kernel

#include "compiler/kernel/codegen/scratch_bound.h"

#include <algorithm>

#include "compiler/kernel/codegen/lane_map.h"

namespace fornax::kernel {

std::optional<uint64_t> ScratchBound(const ir::Kernel& kernel) {
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        if (kernel.inst(ir::InstId{i}).op == ir::Op::kBarrier) {
            return std::nullopt;
        }
    }
    // What is left are private arrays. Later passes split them, and each part is rounded up, but
    // for no element to more than a vector of the widest elements takes.
    constexpr uint64_t kWidestElement = 8;
    const uint64_t vector = kWidestElement * std::max(kMaxLanes, kernel.subgroup_size);
    uint64_t bytes = 0;
    for (const ir::Local& local : kernel.locals) {
        bytes += vector * local.count;
    }
    return bytes;
}

}  // namespace fornax::kernel

#include "npu/units/barrier_passes.h"

#include <algorithm>

namespace fornax::npu {

double ExposedByBarriers(const Description& description,
                         std::span<const PassCycles> passes,
                         const PassCycles& all,
                         uint64_t workgroups,
                         uint64_t occupancy) {
    const double exposed = description.dma.exposed;
    if (all.move <= 0 || workgroups == 0) {
        return exposed;
    }
    // dma.exposed of the bytes is waited for in any case.
    const auto beside = [&](const PassCycles& pass) {
        return std::max(pass.compute, (1 - exposed) * pass.move);
    };
    double one_by_one = 0;
    for (const PassCycles& pass : passes) {
        one_by_one += beside(pass);
    }
    const double groups =
        static_cast<double>(CeilDivide(workgroups, std::max<uint64_t>(1, occupancy)));
    const double waited = std::max(0.0, one_by_one - beside(all)) *
                          description.dma.barrier_exposed * groups /
                          static_cast<double>(workgroups);
    const double total = exposed * all.move + beside(all) + waited;
    return std::clamp((total - all.compute) / all.move, exposed, 1.0);
}

}  // namespace fornax::npu

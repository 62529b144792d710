// The network on chip: one bandwidth between all scratchpads and the memory controller.
//
// Source: a network whose bisection bandwidth is its limit, W. Dally and B. Towles, "Principles and
// Practices of Interconnection Networks", section 3.3. Flows share it max-min fairly
// (fair_share.h); routers and their queues are not modelled.
#pragma once

#include "npu/description/description.h"
#include "npu/units/cycles.h"

namespace fornax::npu {

inline double NetworkBytesPerCycle(const Description& description) {
    return description.BytesPerCycle(description.network.bandwidth_gbs);
}

}  // namespace fornax::npu

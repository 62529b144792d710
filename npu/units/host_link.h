// The link between the host's memory and the device's DRAM.
//
// Source: a transfer of latency and bandwidth, R. Hockney, "The Communication Challenge for MPP"
// (1994): latency + bytes / bandwidth. Transfers share the bandwidth max-min fairly
// (fair_share.h).
#pragma once

#include "npu/description/description.h"
#include "npu/units/cycles.h"

namespace fornax::npu {

inline double HostLinkBytesPerCycle(const Description& description) {
    return description.BytesPerCycle(description.host_link.bandwidth_gbs);
}

inline Cycles HostLinkLatency(const Description& description) {
    return WholeCycles(description.CyclesOf(description.host_link.latency_ns));
}

}  // namespace fornax::npu

#include "npu/units/dram.h"

namespace fornax::npu {

Traffic& Traffic::operator+=(const Traffic& other) {
    dram_read += other.dram_read;
    dram_written += other.dram_written;
    network += other.network;
    over_fetch += other.over_fetch;
    spill += other.spill;
    apart += other.apart;
    far += other.far;
    port += other.port;
    return *this;
}

Traffic TrafficOf(const Description& description, const Access& access, uint64_t cores) {
    const uint64_t burst = description.dram.burst_bytes;
    Traffic traffic;
    uint64_t moved = access.bytes;
    bool is_far = access.far;
    switch (access.kind) {
        case AccessKind::kStream:
        case AccessKind::kReuse:
        case AccessKind::kBroadcast:
            break;
        case AccessKind::kGather:
        case AccessKind::kScatter:
        case AccessKind::kAtomic: {
            const uint64_t element = std::max(access.element_bytes, 1U);
            moved = std::max(access.bytes, CeilDivide(access.bytes, element) *
                                               CeilDivide(element, burst) * burst);
            is_far = true;
            break;
        }
    }
    (access.writes ? traffic.dram_written : traffic.dram_read) = moved;
    traffic.over_fetch = moved - access.bytes;
    traffic.network = moved;
    if (access.kind == AccessKind::kAtomic) {  // the burst comes and goes
        traffic.dram_read = traffic.dram_written = moved;
        traffic.network = 2 * moved;
    }
    traffic.far = is_far ? traffic.dram_read : 0;
    traffic.apart = !is_far && access.apart ? traffic.dram_read : 0;
    traffic.port =
        access.kind == AccessKind::kBroadcast ? moved : CeilDivide(traffic.network, cores);
    return traffic;
}

double DramBytesPerCycle(const Description& description) {
    return description.BytesPerCycle(description.dram.bandwidth_gbs) * description.dram.efficiency;
}

}  // namespace fornax::npu

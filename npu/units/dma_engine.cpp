#include "npu/units/dma_engine.h"

#include <algorithm>

namespace fornax::npu {

double DmaBytesPerCycle(const Description& description, uint64_t cores) {
    const Description::Dma& dma = description.dma;
    const double latency =
        description.CyclesOf(description.dram.latency_ns + description.network.latency_ns);
    double rate = description.BytesPerCycle(dma.port_gbs) * dma.efficiency;
    if (latency > 0) {
        const auto in_flight = static_cast<double>(dma.outstanding * description.dram.burst_bytes);
        rate = std::min(rate, in_flight / latency);
    }
    return rate * static_cast<double>(dma.engines * cores);
}

double DmaCycles(const Description& description, const Traffic& traffic, uint64_t cores) {
    const double streams = DmaBytesPerCycle(description, 1);
    double cycles = static_cast<double>(std::max<uint64_t>(1, traffic.port)) / streams;
    const auto add = [&](uint64_t of_all, double gbs) {
        const double rate =
            description.BytesPerCycle(gbs) * static_cast<double>(description.dma.engines);
        if (rate > 0 && rate < streams) {
            const auto bytes = static_cast<double>(CeilDivide(of_all, cores));
            cycles += bytes / rate - bytes / streams;
        }
    };
    add(traffic.dram_read - std::min(traffic.dram_read, traffic.apart + traffic.far),
        description.dma.stream_gbs);
    add(traffic.apart, description.dma.apart_gbs);
    add(traffic.far, description.dma.far_gbs);
    return cycles;
}

Cycles DmaLatency(const Description& description) {
    return WholeCycles(description.CyclesOf(
        description.dma.setup_ns + description.network.latency_ns + description.dram.latency_ns));
}

Cycles DmaSetups(const Description& description, uint64_t descriptors) {
    return WholeCycles(description.CyclesOf(description.dma.setup_ns) *
                       static_cast<double>(CeilDivide(descriptors, description.dma.engines)));
}

}  // namespace fornax::npu

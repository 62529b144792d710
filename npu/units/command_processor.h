// The command processor: how long packets take beside the work that they start.
//
// Source: the parts of a launch in the device model's design: doorbell + decode + allocation +
// makespan + drain. The processor decodes and allocates for one packet at a time; the doorbell and
// the driver's time come once a submission, the drain passes without it.
#pragma once

#include "npu/description/description.h"
#include "npu/units/cycles.h"

namespace fornax::npu {

struct LaunchCycles {
    Cycles driver = 0;      // of a submission, on the host
    Cycles doorbell = 0;    // of a submission
    Cycles decode = 0;      // of a packet
    Cycles allocation = 0;  // of a dispatch
    Cycles drain = 0;       // of a dispatch
};

inline LaunchCycles LaunchCyclesOf(const Description& description) {
    const Description::CommandProcessor& from = description.command_processor;
    const auto whole = [&](double ns) { return WholeCycles(description.CyclesOf(ns)); };
    return {.driver = whole(1e3 * from.driver_us),
            .doorbell = whole(from.doorbell_ns),
            .decode = whole(from.decode_ns),
            .allocation = whole(from.allocation_ns),
            .drain = whole(from.drain_ns)};
}

}  // namespace fornax::npu

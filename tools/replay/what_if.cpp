#include "tools/replay/what_if.h"

#include <atomic>
#include <thread>

#include "npu/description/read.h"
#include "npu/units/area.h"

namespace fornax::tool {
namespace {

const Change kChanges[] = {
    {"bandwidth", "twice the bandwidth of DRAM and network",
     [](npu::Description& d) {
         d.dram.bandwidth_gbs *= 2;
         d.network.bandwidth_gbs *= 2;
     }},
    {"cores", "twice the cores", [](npu::Description& d) { d.cores.clusters *= 2; }},
    {"scratchpad", "twice the scratchpad of a core",
     [](npu::Description& d) { d.scratchpad.bytes *= 2; }},
    {"matrix", "twice the matrix units of a core",
     [](npu::Description& d) { d.matrix.units *= 2; }},
    {"launch", "half of what submissions and dispatches take",
     [](npu::Description& d) {
         npu::Description::CommandProcessor& launch = d.command_processor;
         for (double* part : {&launch.doorbell_ns, &launch.decode_ns, &launch.allocation_ns,
                              &launch.drain_ns, &launch.driver_us}) {
             *part /= 2;
         }
     }},
};

WhatIf Replayed(npu::Description description,
                std::span<const npu::Record> records,
                uint32_t changes) {
    WhatIf made = {.changes = changes};
    for (size_t i = 0; i < std::size(kChanges); ++i) {
        if ((changes >> i & 1) != 0) {
            kChanges[i].apply(description);
        }
    }
    Status status = npu::CheckDescription(description);
    if (status.ok()) {
        const Result<npu::ReplayResult> result = npu::Replay(description, records);
        if (result.ok()) {
            made.description = description.Hash();
            made.time_ns = description.Nanoseconds(static_cast<double>(result->total));
            made.energy_nj = result->energy.total_nj();
            made.area_mm2 = npu::AreaProxyOf(description).total_mm2();
            return made;
        }
        status = result.error();
    }
    made.failure = status.error().message;
    return made;
}

}  // namespace

std::span<const Change> Changes() {
    return kChanges;
}

std::vector<WhatIf> ReplayChanges(const npu::Description& description,
                                  std::span<const npu::Record> records,
                                  uint32_t threads) {
    std::vector<WhatIf> made(size_t{1} << std::size(kChanges));
    std::atomic<uint32_t> next = 0;
    const auto work = [&] {
        for (uint32_t i = next++; i < made.size(); i = next++) {
            made[i] = Replayed(description, records, i);
        }
    };
    {
        std::vector<std::jthread> others;
        for (uint32_t i = 1; i < threads; ++i) {
            others.emplace_back(work);
        }
        work();
    }
    return made;
}

}  // namespace fornax::tool

#include "driver/modelled_counters.h"

#include <cmath>
#include <numeric>

#include "npu/units/energy.h"

namespace fornax::driver {

namespace {

constexpr VkPerformanceCounterUnitKHR kCycles = VK_PERFORMANCE_COUNTER_UNIT_CYCLES_KHR;
constexpr VkPerformanceCounterUnitKHR kBytes = VK_PERFORMANCE_COUNTER_UNIT_BYTES_KHR;
constexpr VkPerformanceCounterUnitKHR kGeneric = VK_PERFORMANCE_COUNTER_UNIT_GENERIC_KHR;

}  // namespace

constexpr std::array<ModelledCounterInfo, kModelledCounters> kModelledCounterInfos = {{
    {"Modelled time", "Modelled time", "Time on the described machine",
     VK_PERFORMANCE_COUNTER_UNIT_NANOSECONDS_KHR},
    {"Modelled cycles", "Modelled time", "Cycles of the described machine's cores", kCycles},
    {"Modelled matrix cycles", "Modelled units", "Cycles in which matrix units work, of all units",
     kCycles},
    {"Modelled vector cycles", "Modelled units", "Cycles in which cores' vector units work",
     kCycles},
    {"Modelled special cycles", "Modelled units",
     "Cycles in which cores' special-function units work", kCycles},
    {"Modelled scratchpad cycles", "Modelled units", "Cycles in which cores' scratchpads work",
     kCycles},
    {"Modelled DRAM bytes read", "Modelled memory", "Bytes that DRAM gives, in whole bursts",
     kBytes},
    {"Modelled DRAM bytes written", "Modelled memory", "Bytes that DRAM takes, in whole bursts",
     kBytes},
    {"Modelled network bytes", "Modelled memory", "Bytes that pass the network", kBytes},
    {"Modelled over-fetch bytes", "Modelled memory", "Bytes of DRAM that nobody asked for", kBytes},
    {"Modelled spill bytes", "Modelled memory", "Bytes of DRAM because scratchpads were too small",
     kBytes},
    {"Modelled multiply-adds", "Modelled units", "Multiply-accumulates of matrix units", kGeneric},
    {"Modelled scalar cycles", "Modelled units", "Cycles in which cores' scalar units work",
     kCycles},
    {"Modelled energy, nJ", "Modelled energy", "Energy of the described machine in nanojoules",
     kGeneric},
}};

void ModelledReadings::Add(const npu::RecordTime& time) {
    const npu::Cost& cost = time.cost;
    busy_.matrix += cost.busy.matrix;
    busy_.vector += cost.busy.vector;
    busy_.special += cost.busy.special;
    busy_.scalar += cost.busy.scalar;
    busy_.scratchpad += cost.busy.scratchpad;
    traffic_ += cost.traffic;
    events_ += cost.events;
}

uint64_t ModelledReadings::Read(uint32_t counter, npu::Cycles at) const {
    const auto& macs = events_.multiply_accumulates;
    switch (counter) {
        case 0:
            return static_cast<uint64_t>(
                std::llround(machine_.Nanoseconds(static_cast<double>(at))));
        case 1:
            return at;
        case 2:
            return busy_.matrix;
        case 3:
            return busy_.vector;
        case 4:
            return busy_.special;
        case 5:
            return busy_.scratchpad;
        case 6:
            return traffic_.dram_read;
        case 7:
            return traffic_.dram_written;
        case 8:
            return traffic_.network;
        case 9:
            return traffic_.over_fetch;
        case 10:
            return traffic_.spill;
        case 11:
            return std::accumulate(macs.begin(), macs.end(), uint64_t{0});
        case 12:
            return busy_.scalar;
        default:
            return static_cast<uint64_t>(
                std::llround(npu::EnergyOf(machine_, events_, at).total_nj()));
    }
}

}  // namespace fornax::driver

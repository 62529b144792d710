// Energy: events times the energy of an event, and static power over time.
//
// Source: the event-count method of Y. Wu et al., "Accelergy" (ICCAD 2019); the presets' numbers
// are of the order of M. Horowitz, "Computing's energy problem" (ISSCC 2014).
#pragma once

#include "npu/description/description.h"
#include "npu/units/cycles.h"

namespace fornax::npu {

// What happened.
struct EnergyEvents {
    std::array<uint64_t, kMatrixTypes> multiply_accumulates = {};
    uint64_t vector_operations = 0;
    uint64_t special_operations = 0;
    uint64_t scratchpad_bytes = 0;
    uint64_t network_bytes = 0;
    uint64_t dram_bytes = 0;
    uint64_t host_link_bytes = 0;
    EnergyEvents& operator+=(const EnergyEvents& other);
};

// In nanojoules, as VK_KHR_performance_query's counters will have them.
struct Energy {
    double matrix_nj = 0;
    double vector_nj = 0;
    double special_nj = 0;
    double scratchpad_nj = 0;
    double network_nj = 0;
    double dram_nj = 0;
    double host_link_nj = 0;
    double static_nj = 0;
    double total_nj() const {
        return matrix_nj + vector_nj + special_nj + scratchpad_nj + network_nj + dram_nj +
               host_link_nj + static_nj;
    }
};

Energy EnergyOf(const Description& description, const EnergyEvents& events, Cycles total);

}  // namespace fornax::npu

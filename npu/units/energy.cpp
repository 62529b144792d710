#include "npu/units/energy.h"

namespace fornax::npu {

EnergyEvents& EnergyEvents::operator+=(const EnergyEvents& other) {
    for (uint32_t i = 0; i < kMatrixTypes; ++i) {
        multiply_accumulates[i] += other.multiply_accumulates[i];
    }
    vector_operations += other.vector_operations;
    special_operations += other.special_operations;
    scratchpad_bytes += other.scratchpad_bytes;
    network_bytes += other.network_bytes;
    dram_bytes += other.dram_bytes;
    host_link_bytes += other.host_link_bytes;
    return *this;
}

Energy EnergyOf(const Description& description, const EnergyEvents& events, Cycles total) {
    const Description::Energy& each = description.energy;
    const auto nanojoules = [](uint64_t count, double picojoules) {
        return static_cast<double>(count) * picojoules / 1e3;
    };
    Energy energy;
    for (uint32_t i = 0; i < kMatrixTypes; ++i) {
        energy.matrix_nj +=
            nanojoules(events.multiply_accumulates[i], each.mac_pj(static_cast<MatrixType>(i)));
    }
    energy.vector_nj = nanojoules(events.vector_operations, each.vector_pj);
    energy.special_nj = nanojoules(events.special_operations, each.special_pj);
    energy.scratchpad_nj = nanojoules(events.scratchpad_bytes, each.scratchpad_pj_per_byte);
    energy.network_nj = nanojoules(events.network_bytes, each.network_pj_per_byte);
    energy.dram_nj = nanojoules(events.dram_bytes, each.dram_pj_per_byte);
    energy.host_link_nj = nanojoules(events.host_link_bytes, each.host_link_pj_per_byte);
    // mW times ns are pJ.
    energy.static_nj = each.static_mw * description.Nanoseconds(static_cast<double>(total)) / 1e3;
    return energy;
}

}  // namespace fornax::npu

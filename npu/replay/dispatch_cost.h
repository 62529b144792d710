// What a dispatch takes of a described machine when it runs alone: cores, cycles of each unit,
// traffic, and the phases between which its demands change. The replay (replay.h) lets the phases
// of several dispatches and copies contend.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "npu/replay/caches.h"
#include "npu/replay/records.h"
#include "npu/units/core.h"
#include "npu/units/energy.h"

namespace fornax::npu {

// A phase ends when its computation has passed, and `delay` and then its bytes.
struct Phase {
    Cycles compute = 0;
    Cycles delay = 0;
    uint64_t dram_bytes = 0;
    uint64_t network_bytes = 0;
    uint64_t host_bytes = 0;
    // Bytes in a cycle that the record's engines move at most; of the other two in proportion.
    double dram_cap = 0;
    double network_cap = 0;
};

// What a record's time is bound by: the largest of the times that it would take if nothing but this
// took time.
enum class Bound : uint8_t {
    kLaunch,
    kMatrix,
    kVector,
    kSpecial,
    kScalar,
    kScratchpad,
    kDma,
    kNetwork,
    kDram,
    kHostLink,
};
inline constexpr uint32_t kBounds = 10;
inline constexpr std::array<std::string_view, kBounds> kBoundNames = {
    "launch",     "matrix", "vector",  "special", "scalar",
    "scratchpad", "DMA",    "network", "DRAM",    "host link"};

// What a dispatch does between two barriers, of its totals.
struct PassCost {
    UnitCycles workgroup;
    Traffic traffic;
};

struct Cost {
    uint64_t cores = 0;  // that the record holds; 0 of copies
    uint64_t workgroups = 0;
    uint64_t workgroups_of_core = 0;  // of the core that has most
    UnitCycles workgroup;             // on each unit, of the longest workgroup
    UnitCycles busy;                  // of all, added up; matrix over all matrix units
    Traffic traffic;
    uint64_t host_bytes = 0;
    EnergyEvents events;
    uint64_t macs_on_vector_units = 0;  // of types that the matrix unit has no rate for
    ScratchpadRequest request;
    std::vector<PassCost> passes;  // none of a dispatch with one
};

Cost CostOf(const Description& description,
            const DispatchRecord& dispatch,
            const ServedDispatch& served = {});
Cost CostOf(const Description& description, const CopyRecord& copy);

// Bytes that found no scratchpad go to DRAM and come back, once a workgroup.
void AddSpill(const Grant& grant, Cost& cost);

// With the grant that the dispatch got: the first load, what of the other bytes moves while the
// cores wait (barrier_passes.h), computation beside the rest, the last store; without double
// buffers one after the other. The bytes of a core pass in as many tiles as take the least time,
// none larger than half of the scratchpad. No phase is without work.
std::vector<Phase> PhasesOf(const Description& description, const Cost& cost, const Grant& grant);
std::vector<Phase> PhasesOf(const Description& description, const CopyRecord& copy);

// By Bound, `launch` for the first.
std::array<Cycles, kBounds> FloorsOf(const Description& description,
                                     const Cost& cost,
                                     Cycles launch);

}  // namespace fornax::npu

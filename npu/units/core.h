// A core: how the times of its units add up.
//
// One workgroup: max + (1 - overlap) * (sum - max) of its units' cycles, between the roofline (its
// busiest unit hides the others; S. Williams et al., "Roofline", 2009) and one unit after the
// other. Workgroups that are resident together fill each other's gaps: of `workgroups`, each takes
// the busiest unit's cycles, and each group of `occupancy` once what a lone one could not hide.
#pragma once

#include <span>

#include "npu/description/description.h"
#include "npu/units/cycles.h"

namespace fornax::npu {

// The cycles of one workgroup on each kind of unit of a core.
struct UnitCycles {
    Cycles matrix = 0;
    Cycles vector = 0;
    Cycles special = 0;
    Cycles scalar = 0;
    Cycles scratchpad = 0;
    Cycles longest() const { return std::max({matrix, vector, special, scalar, scratchpad}); }
    Cycles sum() const { return matrix + vector + special + scalar + scratchpad; }
};

// One workgroup alone.
Cycles CyclesOfWorkgroup(const UnitCycles& units, double overlap);

// So many workgroups one after the other on a core that holds `occupancy` at once.
Cycles CyclesOfWorkgroups(const UnitCycles& units,
                          double overlap,
                          uint64_t workgroups,
                          uint64_t occupancy);

// Load, compute and store of tiles that follow each other.
struct TileCycles {
    Cycles load = 0;
    Cycles compute = 0;
    Cycles store = 0;
};

// With two buffers, the load of the next tile and the store of the one before pass while a tile is
// computed: L_0 + sum of max(C_i, L_{i+1} + S_{i-1}) + S_last. The shape of software pipelining by
// two stages (M. Lam, 1988). Without, the sum of all.
Cycles CyclesOfTiles(std::span<const TileCycles> tiles, bool double_buffered);

}  // namespace fornax::npu

#include "npu/units/core.h"

namespace fornax::npu {

Cycles CyclesOfWorkgroup(const UnitCycles& units, double overlap) {
    const Cycles longest = units.longest();
    return longest + WholeCycles((1 - overlap) * static_cast<double>(units.sum() - longest));
}

Cycles CyclesOfWorkgroups(const UnitCycles& units,
                          double overlap,
                          uint64_t workgroups,
                          uint64_t occupancy) {
    const Cycles longest = units.longest();
    const Cycles exposed = CyclesOfWorkgroup(units, overlap) - longest;
    return workgroups * longest + CeilDivide(workgroups, occupancy) * exposed;
}

Cycles CyclesOfTiles(std::span<const TileCycles> tiles, bool double_buffered) {
    if (tiles.empty()) {
        return 0;
    }
    Cycles cycles = double_buffered ? tiles.front().load + tiles.back().store : 0;
    for (size_t i = 0; i < tiles.size(); ++i) {
        if (!double_buffered) {
            cycles += tiles[i].load + tiles[i].compute + tiles[i].store;
            continue;
        }
        const Cycles next_load = i + 1 < tiles.size() ? tiles[i + 1].load : 0;
        const Cycles last_store = i > 0 ? tiles[i - 1].store : 0;
        cycles += std::max(tiles[i].compute, next_load + last_store);
    }
    return cycles;
}

}  // namespace fornax::npu

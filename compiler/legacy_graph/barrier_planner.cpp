// Hazards between dispatches: read after write, write after read, write after write.
#include "compiler/legacy_graph/barrier_planner.h"

namespace fornax::legacy_graph {
namespace {

bool Overlap(const ByteRange& a, const ByteRange& b) {
    return a.begin < b.end && b.begin < a.end;
}

bool Conflict(const DispatchAccess& earlier, const DispatchAccess& later) {
    for (const ByteRange& read : later.reads) {
        if (Overlap(earlier.write, read)) {
            return true;
        }
    }
    for (const ByteRange& read : earlier.reads) {
        if (Overlap(read, later.write)) {
            return true;
        }
    }
    return earlier.write_group != later.write_group && Overlap(earlier.write, later.write);
}

}  // namespace

std::vector<bool> PlanBarriers(std::span<const DispatchAccess> dispatches) {
    std::vector<bool> barriers(dispatches.size(), false);
    size_t since_barrier = 0;  // the first dispatch that no barrier orders before the current one
    for (size_t i = 0; i < dispatches.size(); ++i) {
        for (size_t earlier = since_barrier; earlier < i && !barriers[i]; ++earlier) {
            barriers[i] = Conflict(dispatches[earlier], dispatches[i]);
        }
        if (barriers[i]) {
            since_barrier = i;
        }
    }
    return barriers;
}

}  // namespace fornax::legacy_graph

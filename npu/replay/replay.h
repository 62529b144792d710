// Replay: an event-driven simulation with a clock of its own, in cycles of the cores, that turns
// cost records into time on a described machine.
//
//   driver -> doorbell -> command processor decodes -> (dependencies) -> allocates -> cores and
//   scratchpad -> phases of DMA and computation -> drain -> end
//
// A dispatch holds the cores that it needs from its first phase to its last; those that wait for
// cores get them in the order in which they were allocated. DRAM, network and host link are shared
// max-min fairly by all that flows at a time. Deterministic: one thread, whole cycles, ties in the
// order of records.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "npu/replay/dispatch_cost.h"
#include "npu/replay/records.h"
#include "npu/replay/timeline.h"

namespace fornax::npu {

// The kinds of units that are accounted for.
enum class Unit : uint8_t {
    kCommandProcessor,
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
inline constexpr uint32_t kUnits = 10;
inline constexpr std::array<std::string_view, kUnits> kUnitNames = {
    "command processor", "matrix", "vector",  "special", "scalar",
    "scratchpad",        "DMA",    "network", "DRAM",    "host link"};

// busy + stall + idle = instances * total cycles. A unit of a core stalls while a dispatch holds
// the core and the unit has nothing to do; DRAM, network and host link while something flows at
// less than their peak; the command processor while a record waits for cores.
struct UnitTime {
    uint64_t instances = 0;
    Cycles busy = 0;
    Cycles stall = 0;
    Cycles idle = 0;
};

struct RecordTime {
    Cycles decoded = 0;   // the command processor knows the packet
    Cycles ready = 0;     // all that it depends on has ended as well
    Cycles began = 0;     // its first phase
    Cycles finished = 0;  // its last phase
    Cycles ended = 0;     // drained
    // The part that the launch took: decoding and, unless it is a copy, allocation and drain.
    Cycles launch = 0;
    Cycles waited_for_cores = 0;
    Cost cost;
    Grant grant;  // of each of its cores
    Bound bound = Bound::kLaunch;
};

struct ReplayResult {
    Cycles total = 0;
    std::vector<RecordTime> records;
    std::array<UnitTime, kUnits> units;
    Traffic traffic;  // `port` is not added up
    uint64_t host_bytes = 0;
    EnergyEvents events;
    Energy energy;
    ScratchpadCounters scratchpad;      // of the core that most was asked of
    std::vector<GrantLogEntry> grants;  // one for each dispatch, in order of time
    Cycles cores_held = 0;              // cores times cycles
};

// Fails (kInvalidArgument) as CheckRecords() does, and (kOutOfDeviceMemory) where a dispatch needs
// more scratchpad than a core has and may not spill. Threads may replay at the same time. Appends
// to `timeline` if it is not null.
Result<ReplayResult> Replay(const Description& description,
                            std::span<const Record> records,
                            Timeline* timeline = nullptr);

}  // namespace fornax::npu

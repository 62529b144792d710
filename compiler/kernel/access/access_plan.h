// What an access of a vector of lanes becomes: which loads, stores and shuffles, under which test.
//
// PlanAccess() decides from how the offset differs between the lanes, from what is known of the
// memory and from the target. It is a pure function without LLVM: the emitter executes the plan
// (codegen/emit_plan.cpp), `fornax explain-kernel` prints it, and tests compare its text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/kernel/access/lane_layout.h"
#include "compiler/kernel/explain/explain.h"

namespace fornax::kernel {

// What may be assumed of the memory that an access goes to.
struct AccessMemory {
    enum class Bounds : uint8_t {
        kTrusted,  // every active lane is inside: the application's duty
        kChecked,  // lanes outside read zero and write nothing
        kClamped,  // offsets are moved inside
    };
    Bounds bounds = Bounds::kTrusted;
    uint64_t known_size = 0;    // bytes, if constant
    bool is_global = false;     // there is no base: offsets are device addresses
    bool by_lane = false;       // lanes have buffers of their own
    bool has_margins = false;   // hal::kSharedMemoryMargin on both sides may be read and written
    bool ends_exactly = false;  // nothing behind the last element's end may be read
    bool prefetches = false;    // a prefetch of what later accesses touch is worth it
    bool each_lane = false;     // it knows where: also for loads of lanes that are far apart
};

struct AccessTarget {
    uint32_t vector_bits = 512;
    uint32_t lanes = 1;
};

struct AccessRequest {
    const LanePattern& offset;  // in bytes
    uint64_t element_bytes = 4;
    size_t count = 1;  // elements of a lane, one behind the other
    bool is_store = false;
    bool is_masked = false;  // some lanes may be inactive
    // All lanes of every vector are invocations of the workgroup, so what is known of the offset's
    // size holds for all of them.
    bool all_lanes_exist = true;
    AccessMemory memory;
    AccessTarget target;
};

struct AccessPlan {
    enum class Method : uint8_t {
        kOneAddress,  // a scalar load for all lanes, or a store of one active lane's value
        kRuns,        // runs of neighbouring elements of all lanes
        kPieces,      // the elements of a few lanes at once, in pieces of one length
        kTransposed,  // the words of each lane at once, transposed in registers
        kRows,        // runs of rows that lie multiples of a symbolic stride apart
        kLanes,       // each lane by its own address
    };
    // A vector load or store.
    struct Move {
        uint32_t row = 0;
        uint64_t offset = 0;  // bytes from the row's lowest
        uint32_t count = 0;   // units
        // Where its first unit is among all units that are loaded, or in `shuffle` for stores.
        uint32_t at = 0;
    };

    Method method = Method::kLanes;
    size_t count = 1;  // units of a lane
    // Narrow elements move as parts of units where all lanes' elements lie alike in theirs: then
    // one shift does what a shuffle of bytes would.
    uint64_t unit_bytes = 4;
    uint64_t skipped_bytes = 0;  // of the first unit, before the first element
    uint64_t align = 1;          // bytes
    LaneLayout layout;           // of the units
    std::vector<Move> moves;
    // Loads: by unit of a lane and lane, which of the loaded units it is. Stores: by stored unit,
    // which one of the values' it is: unit of a lane * lanes + lane. Negative: any.
    std::vector<int> shuffle;
    // The moved units, end to end, are the lanes' elements in the order of memory.
    bool is_packed = false;
    bool is_contiguous = false;  // one element a lane, in order

    // Where one of these does not hold, each lane goes by its own address.
    bool needs_inside = false;  // the whole span lies inside the memory
    bool needs_active = false;  // all lanes are active
    uint64_t span_bytes = 0;    // kRows: of the longest row, or from the first to behind the last
    int64_t span_begin = 0;     // kRows: bytes from the first row's lowest
    bool is_masked = false;     // moves are made under the mask
    bool is_proven = false;     // the offset's known bound keeps it inside
    bool is_moved = false;      // the first address is moved to where the margins take the span

    std::vector<uint64_t> prefetches;  // cache lines, in bytes from the lowest address
    double cost = 0;                   // in vector operations

    bool by_lane() const { return method == Method::kLanes; }
    bool has_fallback() const { return needs_inside || needs_active; }
};

AccessPlan PlanAccess(const AccessRequest& request);

// Elements of a lane that can stay in the order of memory, lane after lane: see emit_packed.cpp.
bool PackableRun(size_t count);

// For the record, of plans that are not by lane.
AccessForm FormOf(const AccessPlan& plan);
AccessCheck CheckOf(const AccessPlan& plan);

// "runs: 16 x 4 bytes at 0; in order; inside or lane by lane; cost 1"
std::string Text(const AccessPlan& plan);

}  // namespace fornax::kernel

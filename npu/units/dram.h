// DRAM: what accesses of a kernel move through it and the network.
//
// Streams move what they need, in bursts. Gathers, scatters and atomics move a burst for each
// element, however small: the granularity of DRAM (JESD79-4, burst length), of which what nobody
// asked for is over-fetch. A broadcast is read from DRAM once, passes the network once and enters
// every core that takes part; what workgroups use again lies in their scratchpad and is read once.
// Reads of which one burst does not follow the other are counted apart, and those of which each may
// be anywhere, for engines that are slower at them (dma_engine.h): gathers, atomics, and what a
// record says of its accesses.
#pragma once

#include "npu/description/description.h"
#include "npu/units/cycles.h"
#include "npu/units/memory_cache.h"

namespace fornax::npu {

enum class AccessKind : uint8_t { kStream, kBroadcast, kReuse, kGather, kScatter, kAtomic };
inline constexpr std::array<std::string_view, 6> kAccessKindNames = {
    "stream", "broadcast", "reuse", "gather", "scatter", "atomic"};

// What a dispatch reads or writes in one way, over all its workgroups.
struct Access {
    AccessKind kind = AccessKind::kStream;
    bool writes = false;
    uint64_t bytes = 0;          // of kReuse and kBroadcast: each byte once
    uint32_t element_bytes = 4;  // of kGather, kScatter and kAtomic: of one access
    // The part of `bytes` that the same workgroup has accessed before. It stays in its part of the
    // scratchpad if all that it accesses here fits.
    uint64_t repeated_bytes = 0;
    // In the order in which lanes have them, its bursts do not follow each other: lanes that lie
    // far from each other, or a loop that goes on elsewhere.
    bool apart = false;
    // Lanes lie so far from each other that every burst is of another part of memory: rows of a
    // matrix. As gathers are.
    bool far = false;
    // Elements of neighbouring lanes do not touch each other, so that several stores fill a burst.
    bool in_parts = false;
    uint32_t pass = 0;       // of DispatchRecord::passes
    MemoryRange range = {};  // for a cache; without a memory it goes to DRAM
    bool operator==(const Access&) const = default;
};

struct Traffic {
    uint64_t dram_read = 0;
    uint64_t dram_written = 0;
    uint64_t network = 0;
    uint64_t over_fetch = 0;  // part of what DRAM moves
    uint64_t spill = 0;       // part of what DRAM moves
    uint64_t apart = 0;       // part of what DRAM moves: reads of bursts that do not follow others
    uint64_t far = 0;         // part of what DRAM moves: reads of bursts anywhere
    uint64_t port = 0;        // through the DMA engines of the core that has most
    Traffic& operator+=(const Traffic& other);
    uint64_t dram() const { return dram_read + dram_written; }
};

// What an access by `cores` cores moves.
Traffic TrafficOf(const Description& description, const Access& access, uint64_t cores);

// Bytes in a cycle that streams reach, which all flows share (fair_share.h).
double DramBytesPerCycle(const Description& description);

}  // namespace fornax::npu

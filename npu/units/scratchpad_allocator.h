// The firmware's scratchpad service: it places grants in one core's scratchpad while kernels run.
//
// A dispatch asks for the bytes of one workgroup, the least and what it prefers. The service tries,
// one step of a ladder after the other: what is preferred, twice (double buffering), for as many
// workgroups as there are slots; one buffer; fewer workgroups; the least; then it lets the dispatch
// wait for grants that others hold, or spills to DRAM, or fails. Every step's outcome is in the
// log.
//
// Placement by policy: bump grants follow each other and their memory comes back when all are gone,
// buddy grants are powers of two (D. Knuth, "The Art of Computer Programming", 2.5), bank-coloured
// ones are first-fit and begin at a bank that the last grant did not begin at.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/strong_id.h"
#include "npu/description/description.h"
#include "npu/units/cycles.h"

namespace fornax::npu {

using GrantId = StrongId<struct GrantTag>;

struct ScratchpadRequest {
    uint64_t least_bytes = 0;      // of one workgroup
    uint64_t preferred_bytes = 0;  // at least `least_bytes`
    uint64_t workgroups = 1;       // that the core will run
    bool may_spill = true;         // else a request that never fits is a fault
    bool persists = false;         // stays until it is released: it is for one workgroup, once
};

enum class GrantStep : uint8_t {
    kDoubleBuffered,
    kSingleBuffered,
    kFewerWorkgroups,
    kLeast,
    kWait,
    kSpill,
    kFault,
};
inline constexpr std::array<std::string_view, 7> kGrantStepNames = {
    "double-buffered", "single-buffered", "fewer workgroups", "least", "wait", "spill", "fault"};

struct Grant {
    GrantId id = {};  // not valid: kWait and kFault, and where nothing was asked for
    GrantStep step = GrantStep::kFault;
    uint64_t offset = 0;
    uint64_t bytes = 0;        // of all buffers of all workgroups
    uint64_t occupancy = 0;    // workgroups at once
    uint64_t spill_bytes = 0;  // of one workgroup, which live in DRAM
    bool double_buffered = false;
};

struct GrantLogEntry {
    Cycles time = 0;
    uint32_t owner = 0;  // the record that asked
    ScratchpadRequest request;
    Grant grant;
};

struct ScratchpadCounters {
    uint64_t grants = 0;
    uint64_t failures = 0;  // requests that were let wait, spilt or refused
    uint64_t high_water_bytes = 0;
    uint64_t padding_bytes = 0;  // that grants took beyond what was asked for, in all
};

// Not thread-safe.
class ScratchpadAllocator {
  public:
    explicit ScratchpadAllocator(const Description& description);

    // `slots` bounds the workgroups. Writes one line of the log.
    Grant Request(const ScratchpadRequest& request, uint64_t slots, Cycles time, uint32_t owner);
    void Release(GrantId id);

    const std::vector<GrantLogEntry>& log() const { return log_; }
    const ScratchpadCounters& counters() const { return counters_; }
    uint64_t used_bytes() const;
    // The part of what is free that is not in the largest hole: 0 to 1.
    double fragmentation() const;

  private:
    struct Block {
        GrantId id;
        uint64_t offset = 0;
        uint64_t bytes = 0;
    };

    Grant Decide(const ScratchpadRequest& request, uint64_t slots);
    std::optional<Grant> TryPlace(uint64_t bytes, uint64_t occupancy, GrantStep step);
    std::optional<uint64_t> Place(uint64_t bytes) const;
    std::optional<uint64_t> FirstFit(uint64_t bytes, uint64_t alignment, bool colour) const;
    uint64_t Rounded(uint64_t bytes) const;

    Description::Scratchpad scratchpad_;
    std::vector<Block> blocks_;  // by offset
    uint64_t bump_ = 0;
    uint64_t last_bank_ = UINT64_MAX;
    size_t next_ = 0;
    std::vector<GrantLogEntry> log_;
    ScratchpadCounters counters_;
};

}  // namespace fornax::npu

// A sweep: the same records on every description of a space, in parallel.
//
//   records of programs, space -> a replay for each description -> rows -> the Pareto front
//
// Rows do not depend on the number of threads.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "npu/description/space.h"
#include "npu/replay/records.h"

namespace fornax::npu {

// What one description makes of all programs, one after the other.
struct SweepRow {
    std::string failure;  // a sentence if it cannot be replayed; the other members are then 0
    Hash128 description;
    std::vector<double> program_ns;  // of each program
    double time_ns = 0;
    double energy_nj = 0;
    double area_mm2 = 0;  // the proxy of npu/units/area.h
    uint64_t dram_bytes = 0;
    uint64_t spill_bytes = 0;
    double matrix_busy = 0;  // of the matrix units' time, 0 to 1
    double dram_busy = 0;
};

struct SweepOptions {
    uint32_t threads = 1;
    // Leaves descriptions whose values contradict each other out, with a failure; else the sweep
    // fails before it begins.
    bool skip_contradictions = false;
    // The part of the space that is replayed: `first` and those behind it, fewer than `last`.
    uint64_t first = 0;
    uint64_t last = UINT64_MAX;
    // Called now and then by the thread that called RunSweep().
    std::function<void(uint64_t done, uint64_t total)> progress = {};
};

// By index of the space, from `first` on. Fails with the sentence of a contradiction, and as
// CheckRecords().
Result<std::vector<SweepRow>> RunSweep(const Space& space,
                                       std::span<const std::vector<Record>> programs,
                                       const SweepOptions& options);

// Fails with the first sentence of a description that contradicts itself.
Status CheckSpace(const Space& space);

// The rows that no other beats: none is at least as good in time, energy and area and better in
// one. Of equal rows the first. In the order of time.
std::vector<uint64_t> ParetoFront(std::span<const SweepRow> rows);

}  // namespace fornax::npu

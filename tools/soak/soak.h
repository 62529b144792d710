// The soak: mixed load on the Fornax device for minutes or hours, through the loader, with every
// result checked and the process's memory watched.
//
// Each load runs on a thread of its own until the time is over: pipelines that come and go (with
// caches), buffers of all sizes, submissions that nobody waits for, images, whole instances, and
// devices that are lost by a faulty kernel.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace fornax::soak {

struct SoakOptions {
    double minutes = 1;
    double interval_seconds = 10;    // between two reports
    uint64_t most_growth_mib = 32;   // of the resident memory, as SoakReport says
    std::vector<std::string> loads;  // only these; none for all
};

// What one load has done so far. Written by its thread, read by anybody.
struct LoadCounters {
    std::atomic<uint64_t> rounds{0};
    std::atomic<bool> failed{false};
    std::string failure;  // written before `failed`
};

// Runs rounds until `stop`; false, with the counters' failure, when something went wrong.
struct Load {
    const char* name;
    const char* what;  // one round, for people
    void (*run)(const std::atomic<bool>& stop, LoadCounters& counters);
};
std::span<const Load> AllLoads();

// A moment of the soak.
struct SoakSample {
    double minutes = 0;
    uint64_t resident_kib = 0;
    std::vector<uint64_t> rounds;  // by load
};

inline constexpr size_t kLeastSamples = 6;

struct SoakReport {
    std::vector<const Load*> loads;
    std::vector<SoakSample> samples;
    // Resident memory on average over the two halves of the time after the first sixth, in which
    // caches fill. Buffers of random sizes come and go, so single samples tell little, and fewer
    // than kLeastSamples are not judged.
    bool memory_judged = false;
    uint64_t first_kib = 0;
    uint64_t second_kib = 0;
    std::vector<std::string> failures;
};

// `progress` is called with each sample. kInvalidArgument for a load that does not exist.
Result<SoakReport> RunSoak(const SoakOptions& options,
                           const std::function<void(const SoakReport&)>& progress);

}  // namespace fornax::soak

// The table of benchmarks: what is measured, at which size, in which unit, and what limits it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tools/bench/host_limits.h"
#include "tools/bench/workload.h"

namespace fornax::bench {

// How the process that measures a shape finds the driver's disk cache.
enum class CacheState {
    kFilled,  // an earlier process has run the same shape with the same cache directory
    kEmpty,   // a fresh cache directory, and Mesa's cache is off
};

struct Shape {
    const char* name;  // for --filter, the JSON file and error messages
    std::string (*title)(uint32_t size);
    const char* unit;
    bool is_rate;                   // a rate (more is better), or else a time (less is better)
    double unit_scale;              // rate: work per second in one unit; time: units in a second
    double (*work)(uint32_t size);  // in one Run: what rates count, or how often a time occurs
    uint32_t size;
    uint32_t quick_size;  // with --quick
    WorkloadFactory create;
    Limit limit = Limit::kNone;
    bool runs_once = false;  // only the first Run of a process counts
    CacheState cache = CacheState::kFilled;

    uint32_t SizeFor(bool quick) const { return quick ? quick_size : size; }

    // From the seconds of one Run to the unit.
    double Value(double seconds, uint32_t shape_size) const {
        return is_rate ? work(shape_size) / seconds / unit_scale
                       : seconds * unit_scale / work(shape_size);
    }

    // How many times better `a` is than `b`.
    double Ratio(double a, double b) const { return is_rate ? a / b : b / a; }
};

// In the order of the report.
std::span<const Shape> AllShapes();

// Null when there is none of that name.
const Shape* FindShape(const std::string& name);

}  // namespace fornax::bench

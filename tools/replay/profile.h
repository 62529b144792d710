// What a replay says of a program: kernels with what bounds them and how far they are from the
// roofline of the described machine.
//
//   records, description -> replay with its timeline -> Profile -> text, JSON, trace, page
//
// All that is printed or written of a profile carries its stamp: times are modelled.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "npu/replay/replay.h"

namespace fornax::tool {

// All records of one name.
struct KernelProfile {
    std::string name;
    bool is_copy = false;
    uint64_t count = 0;
    npu::Cycles time = 0;    // from ready to ended, added up; waiting for cores is a part of it
    npu::Cycles run = 0;     // from the first phase to the last
    npu::Cycles launch = 0;  // decoding, allocation and drain
    npu::Cycles waited = 0;  // for cores
    // What most of the time is bound by, and how much of it.
    npu::Bound bound = npu::Bound::kLaunch;
    npu::Cycles bound_time = 0;
    uint64_t multiply_accumulates = 0;  // on the matrix units
    uint64_t vector_operations = 0;
    uint64_t special_operations = 0;
    npu::Traffic traffic;
    uint64_t host_bytes = 0;
    uint64_t most_cores = 0;
    npu::Cycles matrix_busy = 0;  // of all matrix units
    double roofline_cycles = 0;   // added up
    double energy_nj = 0;         // without static power
    // The line of the source that does most of what bounds the longest record; "" if that is not
    // known.
    std::string line;
    uint64_t line_percent = 0;
    npu::Cycles longest = 0;

    // Two for a multiply-accumulate.
    double operations() const {
        return 2 * static_cast<double>(multiply_accumulates) +
               static_cast<double>(vector_operations + special_operations);
    }
};

// The peaks of a machine, in operations and bytes of a cycle.
struct Peaks {
    std::array<double, npu::kMatrixTypes> macs = {};  // 0: no unit has them
    double vector = 0;                                // of 32-bit elements
    double special = 0;
    double dram_bytes = 0;
};
Peaks PeaksOf(const npu::Description& description);

// The least cycles of a record if only the machine's peaks bound it: S. Williams et al.,
// "Roofline" (2009), with a ceiling for each kind of unit. Over-fetch and spill do not count.
double RooflineCycles(const npu::Description& description,
                      const npu::Record& record,
                      const npu::Cost& cost);

// One of several programs that run at once (programs.h).
struct ProgramTime {
    std::string name;
    size_t records = 0;
    double alone_ns = 0;
    double together_ns = 0;
};

struct Profile {
    npu::Description description;
    std::span<const npu::Record> records;  // the caller's
    npu::ReplayResult result;
    npu::Timeline timeline;
    std::vector<KernelProfile> kernels;  // the longest first; of equal ones by name
    std::vector<uint32_t> kernel_of;     // by record
    std::vector<ProgramTime> programs;   // if there are several; not made by MakeProfile()

    double Nanoseconds(npu::Cycles cycles) const {
        return description.Nanoseconds(static_cast<double>(cycles));
    }
};

// Fails as Replay(). `records` has to outlive the profile.
Result<Profile> MakeProfile(npu::Description description, std::span<const npu::Record> records);

// Two tables and what belongs to them.
std::string ProfileText(const Profile& profile, size_t top);
// "% busy" and so on of each unit, as a part of a report.
std::string UnitsTable(const npu::ReplayResult& result);
// "12.3", or "" of nothing.
std::string Percent(npu::Cycles part, npu::Cycles whole);

// Kernels, units and sums, with times in nanoseconds.
nlohmann::json ProfileToJson(const Profile& profile);

// A level over time, as steps. Of intervals that overlap, values add up.
struct Interval {
    npu::Cycles began = 0;
    npu::Cycles ended = 0;
    double value = 0;
};
struct Step {
    npu::Cycles time = 0;
    double value = 0;
};
std::vector<Step> StepsOf(std::vector<Interval> intervals);

// For each interval the lowest lane in which it overlaps none; `intervals` are in the order in
// which they begin.
std::vector<uint32_t> LanesOf(std::span<const Interval> intervals);

// Bytes in a cycle that a unit moves, and what else changes over time.
std::vector<Interval> RatesOf(const Profile& profile, npu::Unit unit);
std::vector<Interval> ScratchpadOf(const Profile& profile);  // bytes granted in all cores
std::vector<Interval> CoresOf(const Profile& profile);       // held

}  // namespace fornax::tool

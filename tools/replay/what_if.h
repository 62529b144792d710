// The same records on machines that have twice of something: every combination is replayed at once,
// so that a page can show them without a replay of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "npu/replay/replay.h"

namespace fornax::tool {

struct Change {
    std::string_view key;
    std::string_view meaning;
    void (*apply)(npu::Description&) = nullptr;
};

// Twice the bandwidth, cores, scratchpad, matrix units; half of what a launch takes.
std::span<const Change> Changes();

struct WhatIf {
    uint32_t changes = 0;  // a bit for each of Changes()
    std::string failure;   // a sentence where the machine cannot be, or cannot run the program
    Hash128 description;
    double time_ns = 0;
    double energy_nj = 0;
    double area_mm2 = 0;
};

// By `changes`, 0 first. `threads` replay.
std::vector<WhatIf> ReplayChanges(const npu::Description& description,
                                  std::span<const npu::Record> records,
                                  uint32_t threads);

}  // namespace fornax::tool

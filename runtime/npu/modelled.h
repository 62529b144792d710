// A plan on a described machine: its records, replayed, and the result for programs.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "npu/replay/replay.h"
#include "runtime/npu/plan_records.h"

namespace fornax::runtime {

struct Modelled {
    npu::Description description;
    PlanRecords plan;
    npu::ReplayResult result;
};

// Fails where the machine cannot run a kernel, or a size is beyond what a replay counts.
Result<Modelled> ReplayPlan(npu::Description description, PlanRecords plan);

// Nanoseconds, bytes, what each record is bound by; `stamp` says what the times are.
nlohmann::json ToJson(const Modelled& modelled);

}  // namespace fornax::runtime

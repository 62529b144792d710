// What a model became, for programs: the report of the C interface.
#pragma once

#include <span>
#include <string>

#include "runtime/model.h"

namespace fornax::runtime {

// JSON, as fornax_session_report() says. `times` may be empty.
std::string ReportOf(const ModelPlan& plan,
                     const Instance& instance,
                     std::span<const StepTime> times);

}  // namespace fornax::runtime

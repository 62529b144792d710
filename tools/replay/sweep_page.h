// A sweep as a page: time against energy and area, all values side by side, the Pareto front.
#pragma once

#include <string>

#include "npu/sweep/sweep.h"

namespace fornax::tool {

// Where there are more rows than a picture serves, those that others beat are left out evenly.
std::string SweepPageOf(const npu::Space& space, std::span<const npu::SweepRow> rows);

}  // namespace fornax::tool

// A description with round numbers for tests of equations: one cycle is one nanosecond, so that
// GB/s are bytes in a cycle.
#pragma once

#include "npu/description/read.h"

namespace fornax::npu {

inline Description TestDescription() {
    Result<Description> edge = LoadDescription("edge-4");
    Description description = std::move(edge).value();
    description.cores.clock_ghz = 1;
    return description;
}

}  // namespace fornax::npu

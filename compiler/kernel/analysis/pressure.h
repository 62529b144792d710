// An estimate of how many vector registers a kernel needs, for the choice of the vector width.
#pragma once

#include "compiler/kernel/analysis/lane_patterns.h"

namespace fornax::kernel {

struct RegisterPressure {
    uint32_t live_values = 0;     // most varying values alive at one point, in 32-bit lanes
    bool divergent_loop = false;  // lanes leave a loop at different times
};

RegisterPressure EstimatePressure(const ir::Kernel& kernel, const LaneAnalysis& patterns);

}  // namespace fornax::kernel

// How a kernel goes through memory: whether its workgroups depend on each other, and whether it
// computes so much per cache line that the processor cannot look far enough ahead for the next
// ones.
#pragma once

#include <vector>

#include "compiler/kernel/analysis/lane_patterns.h"

namespace fornax::kernel {

// No workgroup can wait for another one.
bool IndependentWorkgroups(const ir::Kernel& kernel);

// Loads are worth a request for a later line.
bool FetchesLoads(const ir::Kernel& kernel,
                  const LaneAnalysis& patterns,
                  const std::vector<bool>& workgroup_level);

}  // namespace fornax::kernel

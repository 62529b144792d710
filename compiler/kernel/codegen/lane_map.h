// Which invocations run side by side in the lanes of a vector.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/analysis/lane_patterns.h"
#include "compiler/kernel/codegen/emit.h"

namespace fornax::kernel {

// Vectors of kernels that do not see subgroups have no more lanes.
inline constexpr uint32_t kMaxLanes = 64;

// Whether the kernel can tell which invocations run side by side.
bool SeesSubgroups(const ir::Kernel& kernel);

// A kernel that sees subgroups gets one vector a subgroup. Any other starts at the register width
// and takes more lanes while its live values fit the registers. Workgroups of several rows are cut
// into tiles where that makes the memory accesses cheaper, and workgroups smaller than a vector
// share one.
LaneMap ChooseLaneMap(const ir::Kernel& kernel,
                      const EmitOptions& options,
                      const std::vector<bool>& workgroup_level);

}  // namespace fornax::kernel

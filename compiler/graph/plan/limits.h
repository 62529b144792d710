// How large a plan may be. Plans come from files too: these bound the time and memory of everything
// that is done with one but to run it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fornax::graph {

// Placing blocks takes time by the square of their number.
inline constexpr size_t kMaxPlanBlocks = size_t{1} << 16;
inline constexpr size_t kMaxPlanSteps = size_t{1} << 16;
inline constexpr size_t kMaxPlanKernels = size_t{1} << 16;
inline constexpr size_t kMaxPlanPorts = size_t{1} << 14;  // inputs; outputs
inline constexpr size_t kMaxPlanSymbols = 4096;
inline constexpr size_t kMaxPlanSources = size_t{1} << 16;
inline constexpr size_t kMaxPlanGuards = 4096;
inline constexpr size_t kMaxHostOperands = 4096;             // and results
inline constexpr size_t kMaxPlanName = size_t{1} << 16;      // bytes; of reasons, too
inline constexpr uint64_t kMaxPlanData = uint64_t{1} << 40;  // bytes of constants together

}  // namespace fornax::graph

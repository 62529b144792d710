// What the units count in: whole cycles of the cores' clock.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace fornax::npu {

using Cycles = uint64_t;

// A duration begins and ends with a cycle. The largest double that is exact in whole numbers bounds
// what absurd inputs may give, so that sums of many durations do not wrap.
inline Cycles WholeCycles(double cycles) {
    constexpr double kMost = 9007199254740992.0;  // 2^53
    return static_cast<Cycles>(std::min(std::ceil(cycles), kMost));
}

constexpr uint64_t CeilDivide(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace fornax::npu

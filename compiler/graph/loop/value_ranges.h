// Between which numbers a scalar of a kernel is, as far as its text tells.
#pragma once

#include <optional>

#include "compiler/graph/loop/kernel.h"

namespace fornax::graph::loop {

struct ValueRange {
    double low = 0, high = 0;
};

// The range of a float holds unless it is NaN. Nullopt if there is no bound. Clamped values have a
// range, as quantisation makes them, and so do casts of clamped values.
std::optional<ValueRange> RangeOf(const Kernel& kernel, ScalarId id);

// Whether all whole numbers of the range are numbers of the integer type.
bool Fits(const ValueRange& range, ElementType type);

}  // namespace fornax::graph::loop

// Between which numbers a scalar of a kernel is, as far as its text tells.
#pragma once

#include <optional>

#include "compiler/graph/loop/kernel.h"

namespace fornax::graph::loop {

struct ValueRange {
    double low = 0, high = 0;
};

// Of a float that is not NaN; of an integer that has not wrapped. Nullopt: nothing is known.
// Clamped values have one, as quantisation makes them, and what is cast from these.
std::optional<ValueRange> RangeOf(const Kernel& kernel, ScalarId id);

// Whether all whole numbers of the range are numbers of the integer type.
bool Fits(const ValueRange& range, ElementType type);

}  // namespace fornax::graph::loop

// Recognises what quantisation computes: a quotient that is rounded and clamped.
#pragma once

#include <optional>

#include "compiler/graph/loop/kernel.h"

namespace fornax::graph::loop {

// clamp(round(dividend / divisor) + zero, low + zero, high + zero), of whole numbers but for the
// operands of the quotient. So the dividend may be clamped instead, to low * divisor and
// high * divisor: these are rounded, but their quotients by the divisor round to low and high. 0 is
// in the range of what is clamped, so NaN may become the integer 0.
struct Quantised {
    ScalarId dividend;
    float divisor = 1;
    float low = 0, high = 0;
    int32_t zero = 0;
};

// The f32 scalar as such, if all numbers are small enough to be exact.
std::optional<Quantised> FindQuantised(const Kernel& kernel, ScalarId id);

// An integer as the whole number of a float that it was cast from, and what is added to that. Casts
// between that change no number of the float's range are looked through.
struct WholeNumber {
    ScalarId number;
    int32_t plus = 0;
};
std::optional<WholeNumber> FindWholeNumber(const Kernel& kernel, ScalarId id);

}  // namespace fornax::graph::loop

// Random valid kernels with their data, for tests that compare two ways to run them.
//
// Numbers stay where small errors stay small: every scalar has bounds and an estimate of its error,
// functions are used inside of a range where they are well conditioned, and what jumps (rounding,
// comparing, converting to integers) is only done to values that are exact. So each result has a
// tolerance, and most have none: integers, and floats that are exact however they are computed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/graph/loop/kernel.h"

namespace fornax::graph::loop {

struct RandomKernel {
    Kernel kernel;
    Bindings sizes;
    std::vector<std::vector<uint8_t>> buffers;  // before the run
    std::vector<double> tolerances;             // of each buffer's elements; 0: exact
};

// The same seed always gives the same kernel. No element is stored to by two points, and none is
// read that another point stores.
RandomKernel MakeRandomKernel(uint64_t seed);

// Where two runs of it differ by more than they may: a sentence with the element and both values.
std::optional<std::string> FindDifference(const RandomKernel& random,
                                          const std::vector<std::vector<uint8_t>>& expected,
                                          const std::vector<std::vector<uint8_t>>& actual);

}  // namespace fornax::graph::loop

// How the lanes' values differ: offsets from what they share, and rows a stride apart.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// A lane's value is the base, which all share, + its offset + its row * a stride.
struct LaneForm {
    std::vector<int64_t> offsets;
    std::vector<int64_t> rows;  // of several lanes each, none below 0; empty: no stride
    // The stride: a uniform value, multiplied and divided without a remainder.
    ir::ValueId stride;
    uint64_t times = 1;
    uint64_t by = 1;

    bool HasRows() const { return !rows.empty(); }
    bool HasStrideOf(const LaneForm& other) const;
    // What a row is multiplied by if the uniform value is 1.
    int64_t UnitStride() const { return static_cast<int64_t>(times / by); }
    // All have the same value, if not that of a row.
    bool IsOne() const;
    int64_t Lowest() const;
    int64_t Highest() const;
    friend bool operator==(const LaneForm&, const LaneForm&) = default;
};

// Arithmetic of forms. Nothing where the result has none.
namespace lane_forms {

using Lanes = std::optional<LaneForm>;

// What strides are multiplied and divided by.
inline constexpr uint64_t kMaxScale = uint64_t{1} << 20;
inline constexpr size_t kLeastLanesOfARow = 4;

// The stride, if there is one, is a multiple of `by`.
Lanes Divided(LaneForm in, uint64_t by);
LaneForm Remainder(const LaneForm& in, uint64_t by);
Lanes Multiplied(LaneForm in, int64_t times);
// The first + the second * `sign`, which is 1 or -1. If their strides differ, the one whose lanes
// lie within rows of the other is of a value that is 1.
Lanes Sum(LaneForm first, const LaneForm& second, int64_t sign);
// As if the value that the stride is a multiple of were 1.
LaneForm WithoutRows(const LaneForm& in);
// Several rows that follow each other, each of neighbouring lanes.
bool AreRows(const std::vector<int64_t>& rows);

}  // namespace lane_forms

}  // namespace fornax::kernel

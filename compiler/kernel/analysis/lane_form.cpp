// Sums, products and quotients of lanes' forms.
#include "compiler/kernel/analysis/lane_form.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace fornax::kernel {

bool LaneForm::HasStrideOf(const LaneForm& other) const {
    return stride == other.stride && times == other.times && by == other.by;
}

bool LaneForm::IsOne() const {
    return !HasRows() && std::ranges::all_of(offsets, [&](int64_t at) { return at == offsets[0]; });
}

int64_t LaneForm::Lowest() const {
    return *std::ranges::min_element(offsets);
}

int64_t LaneForm::Highest() const {
    return *std::ranges::max_element(offsets);
}

namespace lane_forms {

namespace {

// A stride of `times` / `by` times as much, without a remainder. False if its factors get too
// large.
bool Scale(LaneForm& lanes, int64_t times, int64_t by) {
    if (!lanes.HasRows()) {
        return true;
    }
    if (times <= 0) {
        return false;
    }
    const uint64_t above = std::gcd(lanes.by, static_cast<uint64_t>(times));
    const uint64_t below = std::gcd(lanes.times, static_cast<uint64_t>(by));
    lanes.times = lanes.times / below * (static_cast<uint64_t>(times) / above);
    lanes.by = lanes.by / above * (static_cast<uint64_t>(by) / below);
    return lanes.times <= kMaxScale && lanes.by <= kMaxScale;
}

}  // namespace

Lanes Divided(const LaneForm& in, int64_t by) {
    LaneForm lanes = Each(in, [by](int64_t at) { return at / by; });
    return Scale(lanes, 1, by) ? Lanes(std::move(lanes)) : std::nullopt;
}

Lanes Multiplied(const LaneForm& in, int64_t times) {
    LaneForm lanes = Each(in, [times](int64_t at) { return at * times; });
    return Scale(lanes, times, 1) ? Lanes(std::move(lanes)) : std::nullopt;
}

LaneForm Remainder(const LaneForm& in, int64_t by) {
    LaneForm lanes{.offsets = in.offsets, .rows = {}, .stride = {}};
    return Each(std::move(lanes), [by](int64_t at) { return at % by; });
}

LaneForm WithoutRows(const LaneForm& in) {
    LaneForm lanes{.offsets = in.offsets, .rows = {}, .stride = {}};
    for (size_t i = 0; i < in.rows.size(); ++i) {
        lanes.offsets[i] += in.rows[i] * in.UnitStride();
    }
    return lanes;
}

bool AreRows(const std::vector<int64_t>& rows) {
    return rows.front() != rows.back() && std::ranges::is_sorted(rows) &&
           std::ranges::all_of(rows, [&](int64_t row) {
               return std::ranges::count(rows, row) >= static_cast<int64_t>(kLeastLanesOfARow);
           });
}

Lanes Sum(LaneForm first, const LaneForm& second, int64_t sign) {
    for (size_t i = 0; i < first.offsets.size(); ++i) {
        first.offsets[i] += sign * second.offsets[i];
    }
    if (!second.HasRows()) {
        return first;
    }
    if (sign < 0) {
        return {};
    }
    if (!first.HasRows()) {
        LaneForm sum = second;
        sum.offsets = std::move(first.offsets);
        return sum;
    }
    if (!first.HasStrideOf(second)) {
        // One of them goes on by a stride of 1 within the rows of the other.
        if (AreRows(first.rows) == AreRows(second.rows)) {
            return {};
        }
        for (size_t i = 0; i < first.offsets.size(); ++i) {
            first.offsets[i] -= second.offsets[i];
        }
        return AreRows(first.rows) ? Sum(std::move(first), WithoutRows(second), 1)
                                   : Sum(WithoutRows(first), second, 1);
    }
    for (size_t i = 0; i < first.rows.size(); ++i) {
        first.rows[i] += second.rows[i];
    }
    return first;
}

}  // namespace lane_forms

}  // namespace fornax::kernel

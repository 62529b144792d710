// Sums, products and quotients of lanes' forms.
#include "compiler/kernel/analysis/lane_form.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/kernel/analysis/lane_rules.h"

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
bool Scale(LaneForm& lanes, int64_t times, uint64_t by) {
    constexpr uint64_t kMost = kMaxScale * kMaxScale;  // a larger one stays too large
    if (!lanes.HasRows()) {
        return true;
    }
    const auto factor = static_cast<uint64_t>(times);
    if (times <= 0 || factor > kMost || by > kMost) {
        return false;
    }
    const uint64_t above = std::gcd(lanes.by, factor);
    const uint64_t below = std::gcd(lanes.times, by);
    lanes.times = lanes.times / below * (factor / above);
    lanes.by = lanes.by / above * (by / below);
    return lanes.times <= kMaxScale && lanes.by <= kMaxScale;
}

}  // namespace

Lanes Divided(LaneForm lanes, uint64_t by) {
    lanes.offsets = EachLane(std::move(lanes.offsets), [by](uint64_t at) { return at / by; });
    return Scale(lanes, 1, by) ? Lanes(std::move(lanes)) : std::nullopt;
}

Lanes Multiplied(LaneForm lanes, int64_t times) {
    const auto factor = static_cast<uint64_t>(times);
    lanes.offsets = EachLane(std::move(lanes.offsets), [=](uint64_t at) { return at * factor; });
    return Scale(lanes, times, 1) ? Lanes(std::move(lanes)) : std::nullopt;
}

LaneForm Remainder(const LaneForm& in, uint64_t by) {
    return {.offsets = EachLane(in.offsets, [by](uint64_t at) { return at % by; })};
}

LaneForm WithoutRows(const LaneForm& in) {
    const auto units = EachLane(in.rows, [&](int64_t row) { return row * in.UnitStride(); });
    return {.offsets = SumOfLanes(in.offsets, units, 1)};
}

bool AreRows(const std::vector<int64_t>& rows) {
    return rows.front() != rows.back() && std::ranges::is_sorted(rows) &&
           std::ranges::all_of(rows, [&](int64_t row) {
               return std::ranges::count(rows, row) >= static_cast<int64_t>(kLeastLanesOfARow);
           });
}

Lanes Sum(LaneForm first, const LaneForm& second, int64_t sign) {
    if (first.HasRows() && second.HasRows() && !first.HasStrideOf(second)) {
        // One of them goes on by a stride of 1 within the rows of the other.
        if (sign < 0 || AreRows(first.rows) == AreRows(second.rows)) {
            return {};
        }
        return AreRows(first.rows) ? Sum(std::move(first), WithoutRows(second), 1)
                                   : Sum(WithoutRows(first), second, 1);
    }
    if (sign < 0 && second.HasRows()) {
        return {};
    }
    std::vector<int64_t> offsets = SumOfLanes(std::move(first.offsets), second.offsets, sign);
    std::vector<int64_t> rows = SumOfLanes(first.rows, second.rows, 1);
    LaneForm sum = second.HasRows() ? second : first;
    sum.offsets = std::move(offsets);
    sum.rows = std::move(rows);
    return sum;
}

}  // namespace lane_forms

}  // namespace fornax::kernel

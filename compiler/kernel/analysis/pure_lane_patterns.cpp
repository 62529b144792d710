// The patterns of what pure operations compute (lane_patterns.h). Lanes follow the rules of
// lane_rules.h where known zeros and bounds of the operands prove what these need.
#include <algorithm>
#include <bit>

#include "compiler/kernel/analysis/lane_patterns.h"
#include "compiler/kernel/analysis/lane_rules.h"
#include "compiler/kernel/index/upper_bound.h"
#include "compiler/kernel/ir/evaluate.h"

namespace fornax::kernel {

using ir::Op;
using lane_patterns::Disjoint;
using lane_patterns::TypeMax;

bool lane_patterns::Disjoint(const LanePattern& pattern) {
    const uint64_t bits = BitsOfLanes(pattern.offsets);
    return !pattern.has_rows() && !pattern.varying() && static_cast<int64_t>(bits) >= 0 &&
           (pattern.base_zeros >= 64 || bits >> pattern.base_zeros == 0);
}

namespace {

// Whether all are 0, in the type.
bool WrapLanes(std::vector<int64_t>& by_lane, uint32_t bits) {
    by_lane =
        EachLane(std::move(by_lane), [bits](uint64_t at) { return ir::SignExtend(at, bits); });
    return BitsOfLanes(by_lane) == 0;
}

// Lanes for which none of the patterns differ have the same number, counted from 0 in the order of
// the lanes. Empty if that joins less than half of the lanes.
std::vector<uint8_t> CommonGroups(const std::vector<const LanePattern*>& patterns, uint32_t lanes) {
    std::vector<uint8_t> groups(lanes, 0);
    std::vector<uint32_t> first;  // lane of each group
    for (uint32_t lane = 0; lane < lanes; ++lane) {
        const auto found = std::ranges::find_if(first, [&](uint32_t other) {
            return std::ranges::none_of(patterns, [&](const LanePattern* pattern) {
                return pattern->Differs(lane, other);
            });
        });
        groups[lane] = static_cast<uint8_t>(found - first.begin());
        if (found != first.end()) {
            continue;
        }
        if (first.size() >= lanes / 2) {
            return {};
        }
        first.push_back(lane);
    }
    return groups;
}

// One operand's bits all lie below the other's.
bool IsBelow(const LanePattern& low, const LanePattern& top) {
    const uint64_t bits = BitsOfLanes(top.offsets) | BitsOfLanes(top.rows);
    const int zeros = std::min<int>(top.base_zeros, std::countr_zero(bits));
    return zeros == 64 || low.max >> zeros == 0;
}

// The lanes of one operation's result, and the known zeros of their base, as far as both are
// proven. No operand varies.
struct ProvenLanes {
    using Result = LanePattern;
    static constexpr uint64_t kMaxSize = UINT64_MAX;

    const ir::Instruction& inst;
    const LanePattern& a;
    const LanePattern& b;
    const uint32_t bits;  // of an operand

    static LanePattern With(LanePattern::Kind kind, int zeros = 0) {
        return {.kind = kind, .base_zeros = static_cast<uint8_t>(std::min(zeros, 64))};
    }
    static LanePattern None() { return With(LanePattern::Kind::kVarying); }

    // The sum stays in range, or the offsets fill bits that the base leaves free.
    bool StaysIn(LaneRange range) const {
        const uint64_t limit = TypeMax(bits) >> (range == LaneRange::kUnsigned ? 0 : 1);
        if ((inst.flags & ir::kNoLaneWrap) != 0) {
            return true;
        }
        if (range == LaneRange::kNotNegative && a.max > limit) {
            return false;
        }
        if (Disjoint(a) || !a.constant_offsets()) {
            return Disjoint(a);
        }
        const auto [low, high] = std::ranges::minmax(a.offsets);
        return low == 0 && a.max <= limit && static_cast<uint64_t>(high) <= limit - a.max;
    }
    bool HasRoom(uint64_t size) const { return std::has_single_bit(size) && Disjoint(a); }
    bool AddsFreeBits() const { return Disjoint(a); }
    bool NoCommonBits() const { return IsBelow(a, b) || IsBelow(b, a); }

    LanePattern Converted(bool follows) const {
        if (!a.has_rows()) {
            return Offsets(follows, a.base_zeros, [](uint64_t at) { return at; });
        }
        // The stride is narrower then.
        if (!follows || inst.op == Op::kTrunc || !a.groups.empty() || a.narrow_scale != 0) {
            return None();
        }
        LanePattern pattern = a;
        pattern.narrow_scale = 1;
        return pattern;
    }
    LanePattern Quotient(bool follows, uint64_t size) const {
        const int zeros = std::max(0, a.base_zeros - std::countr_zero(size));
        return Offsets(follows, a.base_zeros == 64 ? 64 : zeros,
                       [size](uint64_t at) { return at / size; });
    }
    LanePattern Remainder(bool follows, uint64_t size) const { return Masked(follows, size - 1); }
    LanePattern Masked(bool follows, uint64_t mask) const {
        const bool none = a.base_zeros == 64 || mask >> a.base_zeros == 0;
        return Offsets(follows, none ? 64 : std::max<int>(a.base_zeros, std::countr_zero(mask)),
                       [mask](uint64_t at) { return at & mask; });
    }
    LanePattern Times(uint64_t factor) const {
        const auto times = [factor](uint64_t at) { return at * factor; };
        LanePattern pattern = Offsets(true, a.base_zeros + std::countr_zero(factor), times);
        if (a.narrow_scale == 0) {
            pattern.rows = EachLane(a.rows, times);
        } else if (pattern.narrow_scale = a.narrow_scale * factor & TypeMax(bits);
                   pattern.narrow_scale == 0) {
            return None();
        }
        return pattern;
    }
    // A uniform factor is the stride of rows.
    LanePattern Product() const {
        const LanePattern& other = a.uniform() ? b : a;
        if ((!a.uniform() && !b.uniform()) || other.has_rows()) {
            return None();
        }
        LanePattern pattern = With(other.kind, a.base_zeros + b.base_zeros);
        if (other.constant_offsets()) {
            pattern.kind = LanePattern::Kind::kRows;
            pattern.offsets.assign(other.offsets.size(), 0);
            pattern.rows = other.offsets;
            pattern.stride = inst.operands[a.uniform() ? 0 : 1];
        }
        return pattern;
    }
    LanePattern Sum(bool follows, int64_t sign) const {
        // Sums of narrow multiples could wrap where the multiples do not.
        const bool narrow = a.narrow_scale != 0 || b.narrow_scale != 0;
        const bool unlike = a.has_rows() && b.has_rows() && (narrow || a.stride != b.stride);
        if (!follows || unlike || (sign < 0 && b.narrow_scale != 0)) {
            return None();
        }
        const LanePattern& with_rows = a.has_rows() ? a : b;
        LanePattern pattern = With(std::max(a.kind, b.kind), std::min(a.base_zeros, b.base_zeros));
        pattern.offsets = SumOfLanes(a.offsets, b.offsets, sign);
        pattern.rows = SumOfLanes(a.rows, b.rows, sign);
        pattern.stride = with_rows.stride;
        pattern.groups = with_rows.groups;
        pattern.narrow_scale = with_rows.narrow_scale;
        return pattern;
    }
    template <typename Map>
    LanePattern Offsets(bool follows, int zeros, Map map) const {
        if (!follows) {
            return None();
        }
        LanePattern pattern = With(a.kind, zeros);
        pattern.offsets = EachLane(a.offsets, map);
        pattern.rows = a.rows;
        pattern.stride = a.stride;
        pattern.groups = a.groups;
        return pattern;
    }
};

}  // namespace

LanePattern lane_patterns::Normalize(LanePattern pattern, uint32_t bits) {
    const bool one_row = WrapLanes(pattern.rows, bits);
    const bool one_offset = WrapLanes(pattern.offsets, bits);
    if (pattern.has_rows() && one_row) {
        pattern.kind = LanePattern::Kind::kOffsets;
        pattern.rows.clear();
        pattern.stride = {};
        pattern.groups.clear();
        pattern.narrow_scale = 0;
    }
    if (pattern.constant_offsets() && one_offset) {
        pattern.kind = LanePattern::Kind::kUniform;
        pattern.offsets.clear();
    }
    return pattern;
}

LanePattern LaneAnalysis::PurePattern(const ir::Instruction& inst) const {
    LanePattern pattern = ScalarPattern(inst);
    // Most values that vary differ everywhere, and comparing their lanes would find the same.
    if (!pattern.varying() || lanes_ == 1 ||
        std::ranges::any_of(inst.operands, [&](ir::ValueId operand) {
            return patterns_[operand.value()].DiffersEverywhere();
        })) {
        return pattern;
    }
    std::vector<const LanePattern*> operands;
    for (ir::ValueId operand : inst.operands) {
        operands.push_back(&patterns_[operand.value()]);
    }
    pattern.groups = CommonGroups(operands, lanes_);
    for (size_t i = 0; inst.op == Op::kIAdd && i < 2; ++i) {
        const LanePattern& varying = *operands[1 - i];
        if (operands[i]->constant_offsets() && varying.varying() && !varying.groups.empty()) {
            // The varying value is the stride.
            LanePattern rows{.kind = LanePattern::Kind::kRows, .max = pattern.max};
            rows.offsets = operands[i]->offsets;
            rows.rows.assign(lanes_, 1);
            rows.stride = inst.operands[1 - i];
            rows.groups = varying.groups;
            return rows;
        }
    }
    return pattern;
}

// x < bound, bound <= x: no lane differs if the bound is a multiple of what the lanes add.
bool LaneAnalysis::LanesCompareAlike(const ir::Instruction& inst) const {
    const bool less = inst.op == Op::kULt || inst.op == Op::kSLt;
    const bool is_signed = inst.op == Op::kSLt || inst.op == Op::kSLe;
    if (!less && !is_signed && inst.op != Op::kULe) {
        return false;
    }
    const LanePattern& x = patterns_[inst.operands[less ? 0 : 1].value()];
    const LanePattern& bound = patterns_[inst.operands[less ? 1 : 0].value()];
    const uint64_t sign = uint64_t{1} << (ir::BitWidth(kernel_.type(inst.operands[0])) - 1);
    return x.constant_offsets() && bound.uniform() && Disjoint(x) &&
           (!is_signed || (x.max < sign && bound.max < sign)) &&
           (bound.base_zeros >= 64 || BitsOfLanes(x.offsets) >> bound.base_zeros == 0);
}

// What the operands' patterns say of a result that need not be in a vector register.
LanePattern LaneAnalysis::ScalarPattern(const ir::Instruction& inst) const {
    const ir::ValueId result = inst.results[0];
    if (inst.op == Op::kConst || inst.op == Op::kUndef) {
        const int zeros = inst.imm == 0 ? 64 : std::countr_zero(inst.imm);
        return {.kind = LanePattern::Kind::kUniform,
                .workgroup = true,
                .base_zeros = static_cast<uint8_t>(zeros),
                .max = inst.imm};
    }
    bool uniform = true;
    bool scalar = true;
    bool workgroup = true;
    for (ir::ValueId operand : inst.operands) {
        uniform &= patterns_[operand.value()].uniform();
        scalar &= patterns_[operand.value()].scalar();
        workgroup &= patterns_[operand.value()].workgroup;
    }
    const bool is_integer = ir::IsInteger(kernel_.type(result));
    const bool is_one = scalar && (uniform || LanesCompareAlike(inst));
    LanePattern pattern = is_one ? Uniform(result, workgroup) : Varying(result);
    if (is_integer) {
        pattern.max = UpperBoundOfResult(kernel_, inst, result, [&](size_t i) {
            return patterns_[inst.operands[i].value()].max;
        });
    }
    if (!scalar || !is_integer || inst.operands.empty()) {
        return pattern;
    }
    const size_t last = inst.operands.size() - 1;
    const LanePattern& a = patterns_[inst.operands[std::max<size_t>(last, 1) - 1].value()];
    const LanePattern& b = patterns_[inst.operands[last].value()];
    LanePattern lanes = ProvenLanes::None();
    if (inst.op != Op::kSelect) {
        const ProvenLanes proven{inst, a, b, ir::BitWidth(kernel_.type(inst.operands[0]))};
        lanes = LanesOfResult(proven, kernel_, inst);
    } else if (patterns_[inst.operands[0].value()].uniform() && a.SameLanes(b)) {
        lanes = a;
        lanes.base_zeros = std::min(a.base_zeros, b.base_zeros);
    }
    if (lanes.varying()) {
        return pattern;
    }
    if (inst.op == Op::kOr || inst.op == Op::kXor) {
        pattern.max = std::min(pattern.max, a.max + std::min(b.max, ~a.max));
    }
    lanes.workgroup = workgroup;
    lanes.max = pattern.max;
    return lane_patterns::Normalize(std::move(lanes), ir::BitWidth(kernel_.type(result)));
}

}  // namespace fornax::kernel

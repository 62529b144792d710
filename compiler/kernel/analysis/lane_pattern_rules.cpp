// How integer operations act on patterns: arithmetic on the compile-time lane offsets.
#include <algorithm>
#include <bit>

#include "compiler/kernel/analysis/lane_patterns.h"

namespace fornax::kernel::lane_patterns {

namespace {

constexpr uint32_t kZeroBase = 64;

LanePattern WithKind(LanePattern::Kind kind) {
    LanePattern pattern;
    pattern.kind = kind;
    return pattern;
}

uint64_t At(const std::vector<int64_t>& by_lane, size_t lane) {
    return by_lane.empty() ? 0 : static_cast<uint64_t>(by_lane[lane]);
}

bool AllZero(const std::vector<int64_t>& by_lane) {
    return std::all_of(by_lane.begin(), by_lane.end(), [](int64_t at) { return at == 0; });
}

// By lane; empty if both are.
std::vector<int64_t> AddLanes(const std::vector<int64_t>& a,
                              const std::vector<int64_t>& b,
                              uint32_t bits,
                              bool subtract) {
    std::vector<int64_t> sums(std::max(a.size(), b.size()));
    for (size_t lane = 0; lane < sums.size(); ++lane) {
        uint64_t x = At(a, lane);
        uint64_t y = At(b, lane);
        sums[lane] = Wrap(static_cast<int64_t>(subtract ? x - y : x + y), bits);
    }
    return sums;
}

void Scale(std::vector<int64_t>& by_lane, uint64_t factor, uint32_t bits) {
    for (int64_t& at : by_lane) {
        at = Wrap(static_cast<int64_t>(static_cast<uint64_t>(at) * factor), bits);
    }
}

}  // namespace

uint64_t TypeMax(uint32_t bits) {
    return bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
}

int64_t Wrap(int64_t value, uint32_t bits) {
    if (bits >= 64) {
        return value;
    }
    uint64_t low = static_cast<uint64_t>(value) & TypeMax(bits);
    uint64_t sign = uint64_t{1} << (bits - 1);
    return static_cast<int64_t>((low ^ sign) - sign);
}

bool Disjoint(const LanePattern& pattern) {
    if (!pattern.constant_offsets()) {
        return pattern.uniform();
    }
    for (int64_t offset : pattern.offsets) {
        if (offset < 0) {
            return false;
        }
        if (pattern.base_zeros < 64 && (static_cast<uint64_t>(offset) >> pattern.base_zeros) != 0) {
            return false;
        }
    }
    return true;
}

LanePattern Normalize(LanePattern pattern) {
    if (pattern.has_rows() && AllZero(pattern.rows)) {
        pattern.kind = LanePattern::Kind::kOffsets;
        pattern.rows.clear();
        pattern.stride = {};
        pattern.groups.clear();
        pattern.narrow_scale = 0;
    }
    if (pattern.constant_offsets() && AllZero(pattern.offsets)) {
        pattern.kind = LanePattern::Kind::kUniform;
        pattern.offsets.clear();
    }
    return pattern;
}

LanePattern Add(const LanePattern& a, const LanePattern& b, uint32_t bits, bool subtract) {
    LanePattern result = WithKind(LanePattern::Kind::kUniform);
    if (a.varying() || b.varying()) {
        result.kind = LanePattern::Kind::kVarying;
        return result;
    }
    // Sums of narrow multiples could wrap where the multiples do not.
    const bool unlike = a.stride != b.stride || a.narrow_scale != 0 || b.narrow_scale != 0;
    if ((a.has_rows() && b.has_rows() && unlike) || (subtract && b.narrow_scale != 0)) {
        result.kind = LanePattern::Kind::kVarying;
        return result;
    }
    result.workgroup = a.workgroup && b.workgroup;
    result.base_zeros = std::min(a.base_zeros, b.base_zeros);
    result.offsets = AddLanes(a.offsets, b.offsets, bits, subtract);
    result.rows = AddLanes(a.rows, b.rows, bits, subtract);
    if (!result.rows.empty()) {
        result.kind = LanePattern::Kind::kRows;
        result.stride = a.has_rows() ? a.stride : b.stride;
        result.groups = a.has_rows() ? a.groups : b.groups;
        result.narrow_scale = a.has_rows() ? a.narrow_scale : b.narrow_scale;
    } else if (!result.offsets.empty()) {
        result.kind = LanePattern::Kind::kOffsets;
    }
    return Normalize(std::move(result));
}

LanePattern MulConst(const LanePattern& a, uint64_t factor, uint32_t bits) {
    LanePattern result = a;
    if (!a.varying()) {
        uint32_t zeros = factor == 0 ? kZeroBase : static_cast<uint32_t>(std::countr_zero(factor));
        result.base_zeros = static_cast<uint8_t>(std::min(kZeroBase, a.base_zeros + zeros));
        Scale(result.offsets, factor, bits);
        if (factor == 0 || result.narrow_scale == 0) {
            Scale(result.rows, factor, bits);
        } else {
            result.narrow_scale *= factor;
        }
        if (result.has_rows() && a.narrow_scale != 0 && result.narrow_scale == 0) {
            return WithKind(LanePattern::Kind::kVarying);
        }
    }
    return Normalize(std::move(result));
}

LanePattern MulUniform(const LanePattern& pattern,
                       ir::ValueId stride,
                       const LanePattern& stride_pattern) {
    LanePattern result = WithKind(LanePattern::Kind::kRows);
    result.base_zeros = static_cast<uint8_t>(
        std::min<uint32_t>(kZeroBase, uint32_t{pattern.base_zeros} + stride_pattern.base_zeros));
    result.workgroup = pattern.workgroup && stride_pattern.workgroup;
    result.rows = pattern.offsets;
    result.offsets.assign(result.rows.size(), 0);
    result.stride = stride;
    return result;
}

LanePattern ShiftRightConst(const LanePattern& a, uint32_t amount) {
    LanePattern result = a;
    if (a.varying()) {
        return result;
    }
    if (!Disjoint(a)) {
        return WithKind(LanePattern::Kind::kVarying);
    }
    result.base_zeros =
        a.base_zeros == kZeroBase
            ? kZeroBase
            : static_cast<uint8_t>(a.base_zeros > amount ? a.base_zeros - amount : 0);
    for (int64_t& offset : result.offsets) {
        offset >>= amount;
    }
    return Normalize(std::move(result));
}

LanePattern AndConst(const LanePattern& a, uint64_t mask) {
    LanePattern result = a;
    if (a.varying()) {
        return result;
    }
    if (!Disjoint(a)) {
        return WithKind(LanePattern::Kind::kVarying);
    }
    uint32_t mask_zeros = mask == 0 ? kZeroBase : static_cast<uint32_t>(std::countr_zero(mask));
    result.base_zeros = static_cast<uint8_t>(std::max<uint32_t>(a.base_zeros, mask_zeros));
    if (a.base_zeros >= 64 || (mask >> a.base_zeros) == 0) {
        result.base_zeros = kZeroBase;
    }
    for (int64_t& offset : result.offsets) {
        offset = static_cast<int64_t>(static_cast<uint64_t>(offset) & mask);
    }
    return Normalize(std::move(result));
}

LanePattern AddGroups(const LanePattern& pattern, ir::ValueId value, const LanePattern& varying) {
    LanePattern result = pattern;
    result.kind = LanePattern::Kind::kRows;
    result.workgroup = false;
    result.base_zeros = 0;
    result.rows.assign(pattern.offsets.size(), 1);
    result.stride = value;
    result.groups = varying.groups;
    return result;
}

std::vector<uint8_t> CommonGroups(const std::vector<const LanePattern*>& patterns, uint32_t lanes) {
    // Most are of this kind, and comparing their lanes would find the same.
    if (lanes > 1 && std::ranges::any_of(patterns, &LanePattern::DiffersEverywhere)) {
        return {};
    }
    std::vector<uint8_t> groups(lanes, 0);
    std::vector<uint32_t> first;  // lane of each group
    for (uint32_t lane = 0; lane < lanes; ++lane) {
        auto same_as = [&](uint32_t other) {
            return std::all_of(patterns.begin(), patterns.end(), [&](const LanePattern* pattern) {
                return !pattern->Differs(lane, other);
            });
        };
        const auto found = std::find_if(first.begin(), first.end(), same_as);
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

}  // namespace fornax::kernel::lane_patterns

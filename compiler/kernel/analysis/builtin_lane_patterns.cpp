// The patterns of what an invocation knows of itself: they follow from which invocations share a
// vector.
#include <algorithm>
#include <bit>

#include "compiler/kernel/analysis/lane_patterns.h"

namespace fornax::kernel {

LanePattern LaneAnalysis::BuiltinPattern(ir::BuiltinId builtin) const {
    using ir::BuiltinId;
    const auto& size = kernel_.workgroup_size;
    const uint32_t x = size[0];
    const uint32_t plane = size[0] * size[1];
    const uint32_t total = plane * size[2];
    const auto lane_zeros = static_cast<uint8_t>(std::countr_zero(lanes_));
    const uint32_t tile = map_.tile_width;
    auto zeros_of = [](uint32_t value) { return static_cast<uint8_t>(std::countr_zero(value)); };

    LanePattern pattern;
    pattern.kind = LanePattern::Kind::kUniform;
    pattern.workgroup = true;
    pattern.max = UINT32_MAX;
    auto uniform_over_subgroups = [&](uint64_t max) {
        pattern.workgroup = single_vector_;
        pattern.max = max;
        return pattern;
    };
    auto by_offsets = [&](uint8_t zeros, uint64_t max, auto&& offset_of) {
        pattern.kind = LanePattern::Kind::kOffsets;
        pattern.workgroup = single_vector_ || zeros == 64;
        pattern.base_zeros = single_vector_ ? 64 : zeros;
        pattern.max = max;
        for (uint32_t lane = 0; lane < lanes_; ++lane) {
            pattern.offsets.push_back(offset_of(lane));
        }
        return lane_patterns::Normalize(pattern);
    };
    auto varying = [&](uint64_t max) {
        pattern.kind = LanePattern::Kind::kVarying;
        pattern.workgroup = false;
        pattern.max = max;
        return pattern;
    };
    switch (builtin) {
        case BuiltinId::kWorkgroupIdX:
            if (map_.workgroups == 1) {
                return pattern;
            }
            by_offsets(64, UINT32_MAX, [&](uint32_t lane) { return lane / total; });
            pattern.base_zeros = 0;
            return pattern;
        case BuiltinId::kLocalIndex:
            if (map_.workgroups > 1) {
                return by_offsets(64, total - 1, [&](uint32_t lane) { return lane % total; });
            }
            if (tile != 0) {
                return by_offsets(zeros_of(tile | lanes_ / tile * x | plane), total - 1,
                                  [&](uint32_t lane) { return lane / tile * x + lane % tile; });
            }
            // Lanes past the workgroup's end count on; their bound does not matter.
            return by_offsets(lane_zeros, total - 1, [](uint32_t lane) { return lane; });
        case BuiltinId::kLocalIdX:
            if (tile != 0) {
                return by_offsets(tile == x ? 64 : zeros_of(tile), x - 1,
                                  [&](uint32_t lane) { return lane % tile; });
            }
            if (single_vector_ || lanes_ % x == 0) {
                return by_offsets(64, x - 1, [&](uint32_t lane) { return lane % x; });
            }
            // One row is counted as its invocations are, past the workgroup's end, too.
            if (x % lanes_ == 0 || (x == total && map_.workgroups == 1)) {
                return by_offsets(lane_zeros, x - 1, [](uint32_t lane) { return lane; });
            }
            return varying(x - 1);
        case BuiltinId::kLocalIdY:
            if (tile != 0) {
                return by_offsets(lanes_ / tile == size[1] ? 64 : zeros_of(lanes_ / tile),
                                  size[1] - 1, [&](uint32_t lane) { return lane / tile; });
            }
            if (single_vector_ || lanes_ % plane == 0) {
                return by_offsets(64, size[1] - 1,
                                  [&](uint32_t lane) { return lane / x % size[1]; });
            }
            if (x % lanes_ == 0) {
                return uniform_over_subgroups(size[1] - 1);
            }
            if (lanes_ % x == 0 && plane % lanes_ == 0) {
                return by_offsets(static_cast<uint8_t>(std::countr_zero(lanes_ / x)), size[1] - 1,
                                  [&](uint32_t lane) { return lane / x; });
            }
            return varying(size[1] - 1);
        case BuiltinId::kLocalIdZ:
            if (tile != 0) {
                return uniform_over_subgroups(size[2] - 1);
            }
            if (single_vector_) {
                return by_offsets(64, size[2] - 1, [&](uint32_t lane) {
                    return lane % std::max(total, 1u) / plane;
                });
            }
            if (plane % lanes_ == 0) {
                return uniform_over_subgroups(size[2] - 1);
            }
            if (lanes_ % plane == 0) {
                return by_offsets(static_cast<uint8_t>(std::countr_zero(lanes_ / plane)),
                                  size[2] - 1, [&](uint32_t lane) { return lane / plane; });
            }
            return varying(size[2] - 1);
        case BuiltinId::kSubgroupId:
            uniform_over_subgroups((total - 1) / kernel_.subgroup_size);
            pattern.workgroup = total <= kernel_.subgroup_size;
            return pattern;
        case BuiltinId::kSubgroupLane:
            return by_offsets(64, lanes_ - 1, [](uint32_t lane) { return lane; });
        default:
            return pattern;
    }
}

}  // namespace fornax::kernel

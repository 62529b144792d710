// The patterns of what an invocation knows of itself: they follow from which invocations share a
// vector.
#include <bit>

#include "compiler/kernel/analysis/lane_patterns.h"
#include "compiler/kernel/index/upper_bound.h"

namespace fornax::kernel {

LanePattern LaneAnalysis::BuiltinPattern(ir::BuiltinId builtin) const {
    using ir::BuiltinId;
    const auto& size = kernel_.workgroup_size;
    const uint32_t plane = size[0] * size[1];
    const uint32_t total = plane * size[2];
    const uint32_t tile = map_.tile_width;
    const uint32_t tile_rows = tile == 0 ? 0 : lanes_ / tile;

    LanePattern pattern;
    pattern.max = UpperBoundOf(kernel_, builtin);
    const auto uniform = [&](bool workgroup) {
        pattern.kind = LanePattern::Kind::kUniform;
        pattern.workgroup = workgroup;
        return pattern;
    };
    // The base is a multiple of this; 0 if it is 0.
    const auto by_offsets = [&](uint64_t base, auto&& offset_of) {
        pattern.kind = LanePattern::Kind::kOffsets;
        pattern.base_zeros = static_cast<uint8_t>(std::countr_zero(single_vector_ ? 0 : base));
        pattern.workgroup = pattern.base_zeros == 64;
        for (uint32_t lane = 0; lane < lanes_; ++lane) {
            pattern.offsets.push_back(offset_of(lane));
        }
        return pattern = lane_patterns::Normalize(std::move(pattern), 32);
    };
    // An invocation's index / stride % count.
    const auto digit = [&](uint32_t stride, uint32_t count) {
        const uint32_t period = stride * count;
        if (single_vector_ || lanes_ % period == 0) {
            return by_offsets(0, [&](uint32_t lane) { return lane / stride % count; });
        }
        if (stride % lanes_ == 0) {
            return uniform(false);
        }
        // Past the workgroup's end, lanes count on; their bound does not matter.
        if (lanes_ % stride == 0 && (period % lanes_ == 0 || period == total)) {
            return by_offsets(lanes_ / stride, [&](uint32_t lane) { return lane / stride; });
        }
        pattern.kind = LanePattern::Kind::kVarying;
        return pattern;
    };
    switch (builtin) {
        case BuiltinId::kWorkgroupIdX:
            if (map_.workgroups == 1) {
                return uniform(true);
            }
            by_offsets(0, [&](uint32_t lane) { return lane / total; });
            pattern.base_zeros = 0;
            return pattern;
        case BuiltinId::kLocalIndex:
            if (map_.workgroups > 1) {
                return by_offsets(0, [&](uint32_t lane) { return lane % total; });
            }
            if (tile != 0) {
                return by_offsets(tile | tile_rows * size[0] | plane, [&](uint32_t lane) {
                    return lane / tile * size[0] + lane % tile;
                });
            }
            return by_offsets(lanes_, [](uint32_t lane) { return lane; });
        case BuiltinId::kLocalIdX:
            if (tile != 0) {
                return by_offsets(tile == size[0] ? 0 : tile,
                                  [&](uint32_t lane) { return lane % tile; });
            }
            return digit(1, size[0]);
        case BuiltinId::kLocalIdY:
            if (tile != 0) {
                return by_offsets(tile_rows == size[1] ? 0 : tile_rows,
                                  [&](uint32_t lane) { return lane / tile; });
            }
            return digit(size[0], size[1]);
        case BuiltinId::kLocalIdZ:
            return tile != 0 ? uniform(single_vector_) : digit(plane, size[2]);
        case BuiltinId::kSubgroupId:
            return uniform(total <= kernel_.subgroup_size);
        case BuiltinId::kSubgroupLane:
            pattern.max = lanes_ - 1;  // of lanes past the workgroup's end, too
            return by_offsets(0, [](uint32_t lane) { return lane; });
        default:
            return uniform(true);
    }
}

}  // namespace fornax::kernel

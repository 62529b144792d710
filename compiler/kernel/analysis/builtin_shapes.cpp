// The shapes of what an invocation knows of itself: they follow from which invocations share a
// vector.
#include <algorithm>
#include <bit>

#include "compiler/kernel/analysis/shapes.h"

namespace fornax::kernel {

Shape ShapeAnalysis::BuiltinShape(ir::BuiltinId builtin) const {
    using ir::BuiltinId;
    const auto& size = kernel_.workgroup_size;
    const uint32_t x = size[0];
    const uint32_t plane = size[0] * size[1];
    const uint32_t total = plane * size[2];
    const auto lane_zeros = static_cast<uint8_t>(std::countr_zero(lanes_));
    const uint32_t tile = map_.tile_width;
    auto zeros_of = [](uint32_t value) { return static_cast<uint8_t>(std::countr_zero(value)); };

    Shape shape;
    shape.kind = Shape::Kind::kUniform;
    shape.workgroup = true;
    shape.max = UINT32_MAX;
    auto uniform_over_subgroups = [&](uint64_t max) {
        shape.workgroup = single_vector_;
        shape.max = max;
        return shape;
    };
    auto pattern = [&](uint8_t zeros, uint64_t max, auto&& offset_of) {
        shape.kind = Shape::Kind::kPattern;
        shape.workgroup = single_vector_ || zeros == 64;
        shape.base_zeros = single_vector_ ? 64 : zeros;
        shape.max = max;
        for (uint32_t lane = 0; lane < lanes_; ++lane) {
            shape.offsets.push_back(offset_of(lane));
        }
        return shape_rules::Normalize(shape);
    };
    auto varying = [&](uint64_t max) {
        shape.kind = Shape::Kind::kVarying;
        shape.workgroup = false;
        shape.max = max;
        return shape;
    };
    switch (builtin) {
        case BuiltinId::kWorkgroupIdX:
            if (map_.workgroups == 1) {
                return shape;
            }
            pattern(64, UINT32_MAX, [&](uint32_t lane) { return lane / total; });
            shape.base_zeros = 0;
            return shape;
        case BuiltinId::kLocalIndex:
            if (map_.workgroups > 1) {
                return pattern(64, total - 1, [&](uint32_t lane) { return lane % total; });
            }
            if (tile != 0) {
                return pattern(zeros_of(tile | lanes_ / tile * x | plane), total - 1,
                               [&](uint32_t lane) { return lane / tile * x + lane % tile; });
            }
            // Lanes past the workgroup's end count on; their bound does not matter.
            return pattern(lane_zeros, total - 1, [](uint32_t lane) { return lane; });
        case BuiltinId::kLocalIdX:
            if (tile != 0) {
                return pattern(tile == x ? 64 : zeros_of(tile), x - 1,
                               [&](uint32_t lane) { return lane % tile; });
            }
            if (single_vector_ || lanes_ % x == 0) {
                return pattern(64, x - 1, [&](uint32_t lane) { return lane % x; });
            }
            // One row is counted as its invocations are, past the workgroup's end, too.
            if (x % lanes_ == 0 || (x == total && map_.workgroups == 1)) {
                return pattern(lane_zeros, x - 1, [](uint32_t lane) { return lane; });
            }
            return varying(x - 1);
        case BuiltinId::kLocalIdY:
            if (tile != 0) {
                return pattern(lanes_ / tile == size[1] ? 64 : zeros_of(lanes_ / tile), size[1] - 1,
                               [&](uint32_t lane) { return lane / tile; });
            }
            if (single_vector_ || lanes_ % plane == 0) {
                return pattern(64, size[1] - 1, [&](uint32_t lane) { return lane / x % size[1]; });
            }
            if (x % lanes_ == 0) {
                return uniform_over_subgroups(size[1] - 1);
            }
            if (lanes_ % x == 0 && plane % lanes_ == 0) {
                return pattern(static_cast<uint8_t>(std::countr_zero(lanes_ / x)), size[1] - 1,
                               [&](uint32_t lane) { return lane / x; });
            }
            return varying(size[1] - 1);
        case BuiltinId::kLocalIdZ:
            if (tile != 0) {
                return uniform_over_subgroups(size[2] - 1);
            }
            if (single_vector_) {
                return pattern(64, size[2] - 1,
                               [&](uint32_t lane) { return lane % std::max(total, 1u) / plane; });
            }
            if (plane % lanes_ == 0) {
                return uniform_over_subgroups(size[2] - 1);
            }
            if (lanes_ % plane == 0) {
                return pattern(static_cast<uint8_t>(std::countr_zero(lanes_ / plane)), size[2] - 1,
                               [&](uint32_t lane) { return lane / plane; });
            }
            return varying(size[2] - 1);
        case BuiltinId::kSubgroupId:
            uniform_over_subgroups((total - 1) / kernel_.subgroup_size);
            shape.workgroup = total <= kernel_.subgroup_size;
            return shape;
        case BuiltinId::kSubgroupLane:
            return pattern(64, lanes_ - 1, [](uint32_t lane) { return lane; });
        default:
            return shape;
    }
}

}  // namespace fornax::kernel

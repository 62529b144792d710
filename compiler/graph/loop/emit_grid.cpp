// The workgroups that are dispatched (emit_grid.h).
#include "compiler/graph/loop/emit_grid.h"

#include <algorithm>

namespace fornax::graph::loop {

namespace {

constexpr uint32_t kMaxLocalSize = 256;
// Groups of rows, each of which is worth reading all of b once more, and the least rows of one.
constexpr int64_t kMaxRowGroups = 8;
constexpr int64_t kLeastRowsOfGroup = 64;

}  // namespace

uint32_t LocalSizeFor(const Expr& points) {
    constexpr int64_t kVector = 16;
    const std::optional<int64_t> constant = points.constant();
    if (!constant) {
        return kMaxLocalSize;
    }
    if (*constant <= kMaxLocalSize) {
        return static_cast<uint32_t>(
            std::max<int64_t>((*constant + kVector - 1) / kVector * kVector, kVector));
    }
    int64_t best = kMaxLocalSize, best_waste = INT64_MAX;
    for (const int64_t size : {256, 192, 128, 64}) {
        const int64_t waste = (*constant + size - 1) / size * size - *constant;
        if (waste < best_waste) {
            best = size;
            best_waste = waste;
        }
    }
    return static_cast<uint32_t>(best);
}

void WorkgroupGrid::SetLocalSize(uint32_t x, uint32_t y) {
    local_size_ = {x, y, 1};
}

Id WorkgroupGrid::WorkgroupIndex(const Expr& count) {
    const Id id = b_.BuiltIn(spv::BuiltIn::WorkgroupId);
    const Id x = b_.Component(id, 0);
    const int64_t most = target_.max_workgroup_count;
    const Range range = count.Bounds(domain_.ranges);
    if (range.high <= most) {
        workgroups_ = {count, 1, 1};
        return x;
    }
    workgroups_ = {Min(count, most), CeilDiv(count, most), 1};
    index_.CheckNarrow(count);
    const Id index = b_.Add(b_.Mul(b_.Component(id, 1), U(target_.max_workgroup_count)), x);
    in_grid_ = b_.ULess(index, index_.EmitExtent(count));
    return index;
}

// Neighbouring workgroups share the columns, so that those of b stay in a cache, but only within a
// group of rows: workers take contiguous parts of the grid, so what a worker writes are rows, which
// it reads again in the next kernel. A line that another processor has read takes long to be
// written again.
TileGrid WorkgroupGrid::OpenTiles(const Expr& batch,
                                  const Expr& m_tiles,
                                  const Expr& n_tiles,
                                  uint32_t tile_rows) {
    int64_t groups = 1;
    if (n_tiles != Expr(1)) {
        const int64_t least = m_tiles.Bounds(domain_.ranges).low;
        groups = kMaxRowGroups;
        while (groups > 1 && least < groups * (kLeastRowsOfGroup / tile_rows)) {
            groups /= 2;
        }
    }
    // The last group may have tiles that do not exist.
    const Expr group_tiles = CeilDiv(m_tiles, groups).Simplify(domain_);
    const Expr all = groups == 1 ? m_tiles : group_tiles * groups;
    const Id workgroup = WorkgroupIndex(batch * all * n_tiles);
    TileGrid grid;
    const Id tiles = index_.Emit(group_tiles), columns = index_.Emit(n_tiles);
    const Id strip = b_.UDiv(workgroup, tiles), group = b_.UDiv(strip, columns);
    grid.n = b_.UMod(strip, columns);
    grid.batch = groups == 1 ? group : b_.UDiv(group, U(groups));
    const Id first = groups == 1 ? U(0) : b_.Mul(b_.UMod(group, U(groups)), tiles);
    grid.m = b_.Add(first, b_.UMod(workgroup, tiles));
    grid.inside = inside();
    if (all.Simplify(domain_) != m_tiles) {
        grid.inside = b_.And(grid.inside, b_.ULess(grid.m, index_.Emit(m_tiles)));
    }
    return grid;
}

Id WorkgroupGrid::IsBelow(Id point, const Expr& points, uint32_t size) {
    const std::optional<int64_t> constant = points.constant();
    const bool whole = constant && *constant % size == 0;
    return whole ? b_.True() : b_.ULess(point, index_.EmitExtent(points));
}

void WorkgroupGrid::AtLanePoint(Id first, const Expr& points, const std::function<void(Id)>& code) {
    const Id point = b_.Add(first, lane_);
    const Id end = index_.EmitSimplified(points);
    const std::optional<int64_t> constant = points.constant();
    const Id whole = constant && *constant % local_size() == 0
                         ? b_.True()
                         : b_.Not(b_.ULess(end, b_.Add(first, U(local_size()))));
    b_.If(
        whole,
        [&] {
            code(point);
            return Ids();
        },
        [&] {
            b_.If(b_.ULess(point, end), [&] { code(point); });
            return Ids();
        });
}

}  // namespace fornax::graph::loop

// Loops over points (emit_loops.h).
#include "compiler/graph/loop/emit_loops.h"

#include <algorithm>

namespace fornax::graph::loop {

using spv::Op;

namespace {

// Accumulators of a reduction over the lanes, if all have as many points.
constexpr size_t kWays = 4;

// Scalars of a point, up to which several are written out.
constexpr int64_t kMaxScalarsOfSeveral = 32;

constexpr int64_t kMinLanePoints = 16;  // of the innermost loop, else all loops are one

}  // namespace

Ids LoopCode::ForNest(std::span<const Loop> loops,
                      std::span<const Id> carried,
                      const PointBody& body) {
    if (loops.empty()) {
        return body(carried);
    }
    return ForLoop(loops[0], carried, [&](std::span<const Id> values) {
        return ForNest(loops.subspan(1), values, body);
    });
}

Ids LoopCode::ForLoop(const Loop& loop, std::span<const Id> carried, const PointBody& body) {
    return b_.For(U(0), index_.EmitExtent(loop.extent), U(1), carried,
                  [&](Id index, std::span<const Id> values) {
                      const ValueScope scope(point_);
                      index_.Bind(loop.variable, loop.extent, index);
                      Ids next = body(values);
                      index_.Unbind(loop.variable);
                      return next;
                  });
}

size_t LoopCode::SeveralOf(const std::vector<bool>& needed, VariableSet variables) const {
    int64_t count = 0;
    for (size_t i = 0; i < needed.size(); ++i) {
        if (needed[i] && (scope_.free[i] & variables) != 0 &&
            (!LoopsOf(kernel_.scalars[i]).empty() || ++count > kMaxScalarsOfSeveral)) {
            return 1;
        }
    }
    return kWays;
}

size_t LoopCode::WaysOf(std::span<const Loop> loops) const {
    int64_t points = 1;
    for (const Loop& loop : loops) {
        points *= loop.extent.constant().value_or(0);
    }
    return points >= static_cast<int64_t>(grid_.local_size() * kWays) ? kWays : 1;
}

Ids LoopCode::ForLanes(const Nest& nest,
                       std::span<const Id> carried,
                       const PointBody& body,
                       size_t ways,
                       size_t several) {
    if (nest.loops.empty()) {  // one point
        return b_.If(
            Test(Op::OpIEqual, grid_.lane(), U(0)), [&] { return body(carried); },
            [&] { return Ids(carried.begin(), carried.end()); });
    }
    const size_t count = nest.loops.size();
    const std::optional<int64_t> innermost = nest.loops.back().extent.constant();
    const bool join = count > 1 && innermost && *innermost < kMinLanePoints;
    const size_t first = join ? 0 : count - 1;
    const std::span<const Loop> outer = std::span(nest.loops).first(first);
    const std::span<const Loop> inner = std::span(nest.loops).subspan(first);
    const Expr points = PointsOf(inner);
    const size_t each = carried.size() / ways;
    // The carried values after one point, which takes those of a way.
    const auto at = [&](Id point, std::span<const Id> values, size_t way) {
        const ValueScope scope(point_);
        index_.BindFromIndex(inner, point);
        Ids next(values.begin(), values.end());
        const Ids one = body(values.subspan(way * each, each));
        std::copy(one.begin(), one.end(), next.begin() + static_cast<std::ptrdiff_t>(way * each));
        index_.Unbind(inner);
        return next;
    };
    return ForNest(outer, carried, [&](std::span<const Id> values) -> Ids {
        const Id end = index_.EmitExtent(points);
        const auto guarded = [&](Id point, std::span<const Id> inside) {
            return b_.If(
                b_.ULess(point, end), [&] { return at(point, inside, 0); },
                [&] { return Ids(inside.begin(), inside.end()); });
        };
        const std::optional<int64_t> constant = points.constant();
        if (constant && *constant <= grid_.local_size()) {
            return *constant == grid_.local_size() ? at(grid_.lane(), values, 0)
                                                   : guarded(grid_.lane(), values);
        }
        if (!constant || several <= 1) {
            return b_.For(U(0), end, U(grid_.local_size()), values,
                          [&](Id base, std::span<const Id> inside) {
                              return guarded(b_.Add(base, grid_.lane()), inside);
                          });
        }
        // Several points at once, then one by one, then those that not all invocations have. A
        // few are no loop.
        const int64_t size = grid_.local_size(), whole = std::max<int64_t>(*constant, 0) / size;
        const auto at_once = static_cast<int64_t>(several);
        int64_t done = 0;
        Ids next(values.begin(), values.end());
        if (whole > static_cast<int64_t>(kWays)) {
            done = whole / at_once * at_once;
            next = b_.For(
                U(0), U(static_cast<uint32_t>(done * size)),
                U(static_cast<uint32_t>(at_once * size)), next,
                [&](Id base, std::span<const Id> inside) {
                    Ids values_inside(inside.begin(), inside.end());
                    for (int64_t i = 0; i < at_once; ++i) {
                        const Id point =
                            b_.Add(b_.Add(base, grid_.lane()), U(static_cast<uint32_t>(i * size)));
                        values_inside = at(point, values_inside, static_cast<size_t>(i) % ways);
                    }
                    return values_inside;
                },
                spirv::ModuleBuilder::Unroll::kDont);
        }
        for (int64_t i = done; i < whole; ++i) {
            const Id point = b_.Add(grid_.lane(), U(static_cast<uint32_t>(i * size)));
            next = at(point, next, static_cast<size_t>(i - done) % ways);
        }
        return *constant % size == 0
                   ? next
                   : guarded(b_.Add(grid_.lane(), U(static_cast<uint32_t>(whole * size))), next);
    });
}

Ids LoopCode::Unrolled(std::span<const Loop> loops,
                       std::span<const Id> carried,
                       const PointBody& body) {
    if (loops.empty()) {
        const ValueScope scope(point_);
        return body(carried);
    }
    RangeScope range(domain_, loops[0].variable);
    Ids values(carried.begin(), carried.end());
    for (int64_t i = 0; i < loops[0].extent.constant(); ++i) {
        range.Set({i, i});
        values = Unrolled(loops.subspan(1), values, body);
    }
    return values;
}

}  // namespace fornax::graph::loop

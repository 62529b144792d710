// Kernels whose loads or stores lie side by side along different loops, such as transpositions.
//
// Invocations side by side take neighbours along one of the loops, and each computes a run of
// points along the other one. So both what lies side by side across invocations and what does so in
// the run is accessed in whole cache lines.
#include <algorithm>

#include "compiler/graph/loop/emitter.h"

namespace fornax::graph::loop {

namespace {

constexpr int64_t kRun = 16;  // points
constexpr int64_t kVector = 16;
constexpr int64_t kLeastLanes = 16;   // of the loop across invocations
constexpr size_t kMostScalars = 320;  // of a run

// The share of the vectors over so many lanes that are not full.
double PartialVectors(int64_t lanes) {
    const int64_t whole = lanes / kVector;
    return lanes % kVector == 0 ? 0 : 1.0 / static_cast<double>(whole + 1);
}

}  // namespace

// Loads and stores lie side by side along the innermost loop or along one other.
std::optional<Emitter::Runs> Emitter::FindRuns(const Nest& nest,
                                               std::span<const Expr> uses,
                                               const std::vector<bool>& needed) const {
    if (nest.loops.size() < 2 || !kernel_.sequential.empty()) {
        return std::nullopt;
    }
    size_t scalars = 0;
    for (size_t i = 0; i < needed.size(); ++i) {
        if (needed[i] && !LoopsOf(kernel_.scalars[i]).empty()) {
            return std::nullopt;
        }
        scalars += needed[i] && (scope_.free[i] & scope_.parallel) != 0 ? 1 : 0;
    }
    const size_t last = nest.loops.size() - 1;
    const Symbol& innermost = nest.loops[last].variable;
    const auto extent_of = [&](size_t loop) {
        return nest.loops[loop].extent.constant().value_or(INT32_MAX);
    };
    if (extent_of(last) < 2) {
        return std::nullopt;
    }
    for (const Expr& use : uses) {
        const std::optional<Expr> stride = use.Coefficient(innermost);
        if (!stride || *stride == Expr(0) || *stride == Expr(1)) {
            continue;
        }
        for (size_t other = last; other-- > 0;) {
            if (use.Coefficient(nest.loops[other].variable) != Expr(1) || extent_of(other) < 2) {
                continue;
            }
            // A loop that is one run has it, else that one whose lanes would fill whole vectors
            // less.
            Runs runs = {.lanes = other, .run = last, .points = kRun};
            const bool is_one_run = extent_of(other) <= kRun && extent_of(last) > kRun;
            const bool is_either = (extent_of(other) <= kRun) == (extent_of(last) <= kRun);
            if (is_one_run ||
                (is_either && PartialVectors(extent_of(last)) < PartialVectors(extent_of(other)))) {
                std::swap(runs.lanes, runs.run);
            }
            runs.points = std::min(kRun, extent_of(runs.run));
            const auto whole = static_cast<size_t>(runs.points);
            if (runs.points < 1 || extent_of(runs.lanes) < kLeastLanes ||
                scalars * whole > kMostScalars) {
                return std::nullopt;
            }
            return runs;
        }
    }
    return std::nullopt;
}

void Emitter::EmitRuns(const Nest& nest, const Runs& runs) {
    const Loop& lane_loop = nest.loops[runs.lanes];
    const Loop& run_loop = nest.loops[runs.run];
    std::vector<Loop> outer;
    for (size_t i = 0; i < nest.loops.size(); ++i) {
        if (i != runs.lanes && i != runs.run) {
            outer.push_back(nest.loops[i]);
        }
    }
    local_size_ = LocalSizeFor(lane_loop.extent);
    group_ = {local_size_, 1, 1};
    const Expr run_count = CeilDiv(run_loop.extent, runs.points).Simplify(domain_);
    const Expr chunks = CeilDiv(lane_loop.extent, local_size_).Simplify(domain_);
    const Id workgroup = WorkgroupIndex(PointsOf(outer) * run_count * chunks);
    lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
    b_.If(in_grid_ == 0 ? b_.True() : in_grid_, [&] {
        const Id count = EmitExpr(run_count), chunk_count = EmitExpr(chunks);
        const Id run = b_.UMod(workgroup, count), rest = b_.UDiv(workgroup, count);
        const Id chunk = outer.empty() ? rest : b_.UMod(rest, chunk_count);
        if (!outer.empty()) {
            BindFromIndex(outer, b_.UDiv(rest, chunk_count));
        }
        const Id lane = b_.Add(b_.Mul(chunk, U(local_size_)), lane_);
        const Id first = b_.Mul(run, U(static_cast<uint32_t>(runs.points)));
        b_.If(EmitBelow(lane, lane_loop.extent, local_size_), [&] {
            OpenScope();
            Bind(lane_loop.variable, lane_loop.extent, lane);
            bound_variables_ |= nest.variables;
            EmitRun(run_loop, first, runs.points);
            CloseScope();
        });
    });
}

// The points of a run, of which the last ones may not exist.
void Emitter::EmitRun(const Loop& loop, Id first, int64_t points) {
    const auto some = [&](int64_t count) {
        std::vector<Write> writes;
        for (int64_t point = 0; point < count; ++point) {
            OpenScope();
            Bind(loop.variable, loop.extent, b_.Add(first, U(static_cast<uint32_t>(point))));
            ComputeWrites(AllStores(), writes);
            Unbind(loop.variable);
            CloseScope();
        }
        Do(writes);
    };
    const std::optional<int64_t> extent = loop.extent.constant();
    if (extent && *extent % points == 0) {
        some(points);
        return;
    }
    const Id end = EmitExtent(loop.extent);
    const Id last = b_.Add(first, U(static_cast<uint32_t>(points - 1)));
    b_.If(
        b_.ULess(last, end),
        [&] {
            some(points);
            return Ids();
        },
        [&] {
            if (extent) {
                some(*extent % points);
                return Ids();
            }
            return b_.For(first, end, U(1), {}, [&](Id point, std::span<const Id>) {
                OpenScope();
                Bind(loop.variable, loop.extent, point);
                EmitStores(AllStores());
                Unbind(loop.variable);
                CloseScope();
                return Ids();
            });
        });
}

}  // namespace fornax::graph::loop

// Runs of points (emit_runs.h).
#include "compiler/graph/loop/emit_runs.h"

#include <algorithm>

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

class RunMapping : MappingPart {
  public:
    RunMapping(KernelParts& parts, const Nest& nest) : MappingPart(parts), nest_(nest) {}

    // False if the kernel is none for this: loads and stores lie side by side along the innermost
    // loop or along one other.
    bool Find(std::span<const Expr> uses, const std::vector<bool>& needed);
    void Emit();

  private:
    void EmitRun(const Loop& loop, Id first);
    // The run's first points, or a single one.
    void EmitPoints(const Loop& loop, Id first, int64_t count);

    const Nest& nest_;
    size_t lanes_ = 0;    // the loop whose points neighbouring invocations take
    size_t run_ = 0;      // the loop that has the runs
    int64_t points_ = 1;  // of a run
};

}  // namespace

bool RunMapping::Find(std::span<const Expr> uses, const std::vector<bool>& needed) {
    if (nest_.loops.size() < 2 || !kernel_.sequential.empty()) {
        return false;
    }
    size_t scalars = 0;
    for (size_t i = 0; i < needed.size(); ++i) {
        if (needed[i] && !LoopsOf(kernel_.scalars[i]).empty()) {
            return false;
        }
        scalars += needed[i] && (scope_.free[i] & scope_.parallel) != 0 ? 1 : 0;
    }
    const size_t last = nest_.loops.size() - 1;
    const Symbol& innermost = nest_.loops[last].variable;
    const auto extent_of = [&](size_t loop) {
        return nest_.loops[loop].extent.constant().value_or(INT32_MAX);
    };
    if (extent_of(last) < 2) {
        return false;
    }
    for (const Expr& use : uses) {
        const std::optional<Expr> stride = use.Coefficient(innermost);
        if (!stride || *stride == Expr(0) || *stride == Expr(1)) {
            continue;
        }
        for (size_t other = last; other-- > 0;) {
            if (use.Coefficient(nest_.loops[other].variable) != Expr(1) || extent_of(other) < 2) {
                continue;
            }
            // A loop that is one run has it, else that one whose lanes would fill whole vectors
            // less.
            lanes_ = other;
            run_ = last;
            const bool is_one_run = extent_of(other) <= kRun && extent_of(last) > kRun;
            const bool is_either = (extent_of(other) <= kRun) == (extent_of(last) <= kRun);
            if (is_one_run ||
                (is_either && PartialVectors(extent_of(last)) < PartialVectors(extent_of(other)))) {
                std::swap(lanes_, run_);
            }
            points_ = std::min(kRun, extent_of(run_));
            return points_ >= 1 && extent_of(lanes_) >= kLeastLanes &&
                   scalars * static_cast<size_t>(points_) <= kMostScalars;
        }
    }
    return false;
}

void RunMapping::Emit() {
    const Loop& lane_loop = nest_.loops[lanes_];
    const Loop& run_loop = nest_.loops[run_];
    std::vector<Loop> outer;
    for (size_t i = 0; i < nest_.loops.size(); ++i) {
        if (i != lanes_ && i != run_) {
            outer.push_back(nest_.loops[i]);
        }
    }
    grid_.SetLocalSize(LocalSizeFor(lane_loop.extent));
    const Expr run_count = CeilDiv(run_loop.extent, points_).Simplify(domain_);
    const Expr chunks = CeilDiv(lane_loop.extent, grid_.local_size()).Simplify(domain_);
    const Id workgroup = grid_.WorkgroupIndex(PointsOf(outer) * run_count * chunks);
    grid_.LoadLane();
    b_.If(grid_.inside(), [&] {
        const Id count = index_.Emit(run_count), chunk_count = index_.Emit(chunks);
        const Id run = b_.UMod(workgroup, count), rest = b_.UDiv(workgroup, count);
        const Id chunk = outer.empty() ? rest : b_.UMod(rest, chunk_count);
        if (!outer.empty()) {
            index_.BindFromIndex(outer, b_.UDiv(rest, chunk_count));
        }
        const Id lane = b_.Add(b_.Mul(chunk, U(grid_.local_size())), grid_.lane());
        const Id first = b_.Mul(run, U(static_cast<uint32_t>(points_)));
        b_.If(grid_.IsBelow(lane, lane_loop.extent, grid_.local_size()), [&] {
            const ValueScope scope(point_);
            index_.Bind(lane_loop.variable, lane_loop.extent, lane);
            point_.AddVariables(nest_.variables);
            EmitRun(run_loop, first);
        });
    });
}

// The points of a run, of which the last ones may not exist.
void RunMapping::EmitRun(const Loop& loop, Id first) {
    const std::optional<int64_t> extent = loop.extent.constant();
    if (extent && *extent % points_ == 0) {
        EmitPoints(loop, first, points_);
        return;
    }
    const Id end = index_.EmitExtent(loop.extent);
    const Id last = b_.Add(first, U(static_cast<uint32_t>(points_ - 1)));
    b_.If(
        b_.ULess(last, end),
        [&] {
            EmitPoints(loop, first, points_);
            return Ids();
        },
        [&] {
            if (extent) {
                EmitPoints(loop, first, *extent % points_);
                return Ids();
            }
            return b_.For(first, end, U(1), {}, [&](Id point, std::span<const Id>) {
                EmitPoints(loop, point, 1);
                return Ids();
            });
        });
}

void RunMapping::EmitPoints(const Loop& loop, Id first, int64_t count) {
    std::vector<StoreCode::Write> writes;
    for (int64_t point = 0; point < count; ++point) {
        const ValueScope scope(point_);
        index_.Bind(loop.variable, loop.extent, b_.Add(first, U(static_cast<uint32_t>(point))));
        stores_.Compute(StoresOf(kernel_), writes);
        index_.Unbind(loop.variable);
    }
    stores_.Do(writes);
}

bool EmitRuns(KernelParts& parts,
              const Nest& nest,
              std::span<const Expr> uses,
              const std::vector<bool>& needed) {
    RunMapping mapping(parts, nest);
    if (!mapping.Find(uses, needed)) {
        return false;
    }
    mapping.Emit();
    return true;
}

}  // namespace fornax::graph::loop

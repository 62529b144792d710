// Kernels whose invocations have a point each (emit_flat.h).
#include "compiler/graph/loop/emit_flat.h"

#include <algorithm>

#include "compiler/graph/loop/emit_across.h"
#include "compiler/graph/loop/emit_runs.h"

namespace fornax::graph::loop {

namespace {

constexpr uint32_t kMaxLocalSize = 256;
constexpr uint32_t kTile = 32;     // invocations along each of two loops
constexpr int64_t kMinLanes = 32;  // of the loops along the invocations, if there are so many

class FlatMapping : MappingPart {
  public:
    explicit FlatMapping(KernelParts& parts) : MappingPart(parts), parts_(parts) {}
    // Or by one of the mappings that several points of an invocation make faster.
    void Emit();

  private:
    void EmitChunks(const Nest& nest);
    std::optional<size_t> TiledLoop(const Nest& nest, std::span<const Expr> uses) const;
    void EmitTiles(const Nest& nest, size_t other);
    bool EmitShortRows(const Nest& nest, std::span<const Expr> uses);
    // The sequential loops and in them the stores.
    void EmitPoint(size_t sequential = 0);

    KernelParts& parts_;
};

}  // namespace

void FlatMapping::Emit() {
    const std::vector<bool> needed = scalars_.Needed(RootsOf(StoresOf(kernel_)));
    const Nest nest = nests_.Collapse(kernel_.parallel, nests_.UsesIn(needed, kernel_.stores));
    const std::vector<Expr> uses = nests_.UsesIn(needed, kernel_.stores);
    if (EmitRuns(parts_, nest, uses, needed) || EmitAcross(parts_, nest, uses)) {
        return;
    }
    if (const std::optional<size_t> other = TiledLoop(nest, uses)) {
        EmitTiles(nest, *other);
        return;
    }
    if (!EmitShortRows(nest, uses)) {
        EmitChunks(nest);
    }
}

void FlatMapping::EmitChunks(const Nest& nest) {
    size_t first = nest.loops.size();
    int64_t lanes = 1;
    while (first > 0 && lanes < kMinLanes) {
        --first;
        lanes *= nest.loops[first].extent.constant().value_or(kMinLanes);
        lanes = std::max<int64_t>(lanes, 1);
    }
    const std::span<const Loop> outer(nest.loops.data(), first);
    const std::span<const Loop> inner(nest.loops.data() + first, nest.loops.size() - first);
    const Expr points = PointsOf(inner);
    grid_.SetLocalSize(LocalSizeFor(points));
    const Expr chunks = CeilDiv(points, grid_.local_size()).Simplify(domain_);
    const Id workgroup = grid_.WorkgroupIndex(PointsOf(outer) * chunks);
    grid_.LoadLane();
    b_.If(grid_.inside(), [&] {
        Id chunk = workgroup;
        if (!outer.empty()) {
            const Id count = index_.Emit(chunks);
            chunk = b_.UMod(workgroup, count);
            index_.BindFromIndex(outer, b_.UDiv(workgroup, count));
        }
        const Id point = b_.Add(b_.Mul(chunk, U(grid_.local_size())), grid_.lane());
        b_.If(grid_.IsBelow(point, points, grid_.local_size()), [&] {
            const ValueScope scope(point_);
            index_.BindFromIndex(inner, point);
            point_.AddVariables(nest.variables);
            EmitPoint();
        });
    });
}

// A loop beside the innermost one along which elements lie side by side that do not along the
// innermost one, as in a transposition.
std::optional<size_t> FlatMapping::TiledLoop(const Nest& nest, std::span<const Expr> uses) const {
    if (nest.loops.size() < 2) {
        return std::nullopt;
    }
    const Symbol& innermost = nest.loops.back().variable;
    for (const Expr& use : uses) {
        const std::optional<Expr> stride = use.Coefficient(innermost);
        if (!stride || *stride == Expr(0) || *stride == Expr(1)) {
            continue;
        }
        for (size_t i = nest.loops.size() - 1; i-- > 0;) {
            const std::optional<int64_t> extent = nest.loops[i].extent.constant();
            if (use.Coefficient(nest.loops[i].variable) == Expr(1) &&
                (!extent || *extent >= kTile)) {
                return i;
            }
        }
    }
    return std::nullopt;
}

// A workgroup is a tile of the innermost loop and one other, so that what lies side by side along
// either of them is accessed together.
void FlatMapping::EmitTiles(const Nest& nest, size_t other) {
    const Loop& x_loop = nest.loops.back();
    const Loop& y_loop = nest.loops[other];
    std::vector<Loop> outer = nest.loops;
    outer.pop_back();
    outer.erase(outer.begin() + static_cast<std::ptrdiff_t>(other));
    grid_.SetLocalSize(kTile, kTile);
    const Expr x_tiles = CeilDiv(x_loop.extent, kTile), y_tiles = CeilDiv(y_loop.extent, kTile);
    const Id workgroup = grid_.WorkgroupIndex(PointsOf(outer) * x_tiles * y_tiles);
    const Id local = b_.BuiltIn(spv::BuiltIn::LocalInvocationId);
    grid_.LoadLane();
    b_.If(grid_.inside(), [&] {
        const Id x_count = index_.Emit(x_tiles), y_count = index_.Emit(y_tiles);
        const Id x_tile = b_.UMod(workgroup, x_count), rest = b_.UDiv(workgroup, x_count);
        if (!outer.empty()) {
            index_.BindFromIndex(outer, b_.UDiv(rest, y_count));
        }
        const Id y_tile = outer.empty() ? rest : b_.UMod(rest, y_count);
        const Id x = b_.Add(b_.Mul(x_tile, U(kTile)), b_.Component(local, 0));
        const Id y = b_.Add(b_.Mul(y_tile, U(kTile)), b_.Component(local, 1));
        b_.If(
            b_.And(grid_.IsBelow(x, x_loop.extent, kTile), grid_.IsBelow(y, y_loop.extent, kTile)),
            [&] {
                const ValueScope scope(point_);
                index_.Bind(y_loop.variable, y_loop.extent, y);
                index_.Bind(x_loop.variable, x_loop.extent, x);
                point_.AddVariables(nest.variables);
                EmitPoint();
            });
    });
}

// Rows shorter than kMinLanes that are read with a small stride begin with a vector each. Where
// vectors cross the ends of rows, what they read has no pattern and is loaded one by one.
bool FlatMapping::EmitShortRows(const Nest& nest, std::span<const Expr> uses) {
    constexpr int64_t kVector = 16, kMostStride = 4;
    if (nest.loops.size() < 2) {
        return false;
    }
    const Loop& row = nest.loops.back();
    const int64_t extent = row.extent.constant().value_or(kMinLanes);
    const bool is_read_so = std::any_of(uses.begin(), uses.end(), [&](const Expr& use) {
        const std::optional<Expr> stride = use.Coefficient(row.variable);
        const int64_t step = stride ? stride->constant().value_or(0) : 0;
        return step > 1 && step <= kMostStride;
    });
    if (!is_read_so || extent <= kVector / 2 || extent >= kMinLanes || extent % kVector == 0) {
        return false;
    }
    const std::span<const Loop> outer(nest.loops.data(), nest.loops.size() - 1);
    const auto lanes = static_cast<uint32_t>((extent + kVector - 1) / kVector * kVector);
    const uint32_t together = kMaxLocalSize / lanes;
    grid_.SetLocalSize(kMaxLocalSize);
    const Expr rows = PointsOf(outer);
    const Id workgroup = grid_.WorkgroupIndex(CeilDiv(rows, together).Simplify(domain_));
    grid_.LoadLane();
    b_.If(grid_.inside(), [&] {
        const Id index = b_.Add(b_.Mul(workgroup, U(together)), b_.UDiv(grid_.lane(), U(lanes)));
        const Id place = b_.UMod(grid_.lane(), U(lanes));
        const Id is_in_row = b_.ULess(place, U(static_cast<uint32_t>(extent)));
        b_.If(b_.And(grid_.IsBelow(index, rows, together), is_in_row), [&] {
            const ValueScope scope(point_);
            index_.BindFromIndex(outer, index);
            index_.Bind(row.variable, row.extent, place);
            point_.AddVariables(nest.variables);
            EmitPoint();
        });
    });
    return true;
}

void FlatMapping::EmitPoint(size_t sequential) {
    const std::vector<const Store*> stores = StoresOf(kernel_);
    if (sequential == kernel_.sequential.size()) {
        stores_.Emit(stores);
        return;
    }
    scalars_.Hoist(scalars_.Needed(RootsOf(stores)));
    const Loop& loop = kernel_.sequential[sequential];
    const BoundVariables bound(point_, scope_.VariablesOf(loop));
    loops_.ForLoop(loop, {}, [&](std::span<const Id>) {
        EmitPoint(sequential + 1);
        return Ids();
    });
}

void EmitFlat(KernelParts& parts) {
    FlatMapping(parts).Emit();
}

}  // namespace fornax::graph::loop

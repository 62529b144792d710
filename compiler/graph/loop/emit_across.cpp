// Reductions that go across the memory (emit_across.h).
#include "compiler/graph/loop/emit_across.h"

#include <algorithm>

namespace fornax::graph::loop {

namespace {

constexpr int64_t kLeastColumns = 256;
constexpr int64_t kMostColumns = 1024;  // of a tile
constexpr int64_t kLeastRows = 16;
constexpr size_t kMostReductions = 3;
// A tile that is read several times should still be in the second cache.
constexpr int64_t kMostElements = int64_t{64} * 1024;
// As many workgroups share the work well.
constexpr int64_t kManyWorkgroups = 32;
// Rows for which a column's value is loaded and stored once.
constexpr int64_t kRowsAtOnce = 4;

class AcrossMapping : MappingPart {
  public:
    AcrossMapping(KernelParts& parts, const Nest& nest)
        : MappingPart(parts), nest_(nest), columns_(nest.loops.back()) {}

    // False if the kernel is none for this.
    bool Find(std::span<const Expr> uses) {
        const std::optional<int64_t> extent = columns_.extent.constant();
        if (!extent || *extent < kLeastColumns || *extent > INT32_MAX ||
            kernel_.sequential.size() > 1) {
            return false;
        }
        extent_ = *extent;
        if (!LieSideBySide(uses)) {
            return false;
        }
        const std::vector<bool> needed = scalars_.Needed(RootsOf(StoresOf(kernel_)));
        int64_t rows = 1;
        for (size_t i = 0; i < needed.size(); ++i) {
            const ScalarNode& node = kernel_.scalars[i];
            const auto* load = std::get_if<Load>(&node.value);
            if (!needed[i]) {
                continue;
            }
            if (load != nullptr && kernel_[load->buffer].written) {
                return false;
            }
            if (LoopsOf(node).empty()) {
                continue;
            }
            int64_t points = 1;
            for (const Loop& loop : LoopsOf(node)) {
                const std::optional<int64_t> count = loop.extent.constant();
                points *= std::clamp<int64_t>(count.value_or(0), 0, INT32_MAX + int64_t{1});
                if (points > INT32_MAX) {
                    return false;
                }
            }
            if (points < kLeastRows || (scope_.free[i] & ~scope_.parallel) != 0 || !CanKeep(node)) {
                return false;
            }
            rows = std::max(rows, points);
            kept_.push_back({ScalarId(i)});
        }
        if (kept_.empty() || kept_.size() > kMostReductions) {
            return false;
        }
        ChooseTile(rows);
        const uint64_t bytes = 2 * sizeof(uint32_t) * kept_.size() * static_cast<uint64_t>(tile_);
        return bytes <= target_.max_workgroup_memory;
    }

    void Run() {
        const std::vector<Loop> outer(nest_.loops.begin(), nest_.loops.end() - 1);
        grid_.SetLocalSize(target_.subgroup_size);
        for (Kept& kept : kept_) {
            const auto length = static_cast<uint32_t>(tile_);
            const ScalarNode& node = kernel_[kept.id];
            if (const auto* arg = std::get_if<ArgReduce>(&node.value)) {
                kept.value = b_.WorkgroupArray(TypeFor(kernel_[arg->body].type), length);
                kept.position = b_.WorkgroupArray(b_.U32(), length);
            } else {
                kept.value = b_.WorkgroupArray(TypeFor(node.type), length);
            }
        }
        const Expr tiles((extent_ + tile_ - 1) / tile_);
        const Id workgroup = grid_.WorkgroupIndex(PointsOf(outer) * tiles);
        grid_.LoadLane();
        b_.If(grid_.inside(), [&] {
            const ValueScope scope(point_);
            Id tile = workgroup;
            if (!outer.empty()) {
                const Id count = index_.Emit(tiles);
                tile = b_.UMod(workgroup, count);
                index_.BindFromIndex(outer, b_.UDiv(workgroup, count));
            }
            first_ = b_.Mul(tile, b_.Uint(static_cast<uint32_t>(tile_)));
            for (size_t i = 0; i < kept_.size(); ++i) {
                ComputeReduction(i);
            }
            EmitResults();
        });
    }

  private:
    struct Kept {
        ScalarId id;
        Id value = 0, position = 0;  // arrays of the tile's columns
    };

    // Neighbours along the columns are neighbours in memory, or the same; along a reduction's
    // loops they are neither.
    bool LieSideBySide(std::span<const Expr> uses) const {
        bool any = false;
        for (const Expr& use : uses) {
            const std::optional<Expr> stride = use.Coefficient(columns_.variable);
            if (!stride || (*stride != Expr(0) && *stride != Expr(1))) {
                return false;
            }
            any = any || *stride == Expr(1);
        }
        for (const ScalarNode& node : kernel_.scalars) {
            const auto* load = std::get_if<Load>(&node.value);
            for (const Loop& loop : scope_.variables) {
                const bool parallel = (scope_.parallel >> *scope_.Find(loop.variable) & 1) != 0;
                if (load == nullptr || parallel) {
                    continue;
                }
                const Expr offset = nests_.Simplified(nests_.Offset(load->buffer, load->index));
                const std::optional<Expr> stride = offset.Coefficient(loop.variable);
                const std::optional<int64_t> constant = stride ? stride->constant() : std::nullopt;
                if (!constant || (*constant != 0 && *constant < kLeastColumns)) {
                    return false;
                }
            }
        }
        return any;
    }

    bool CanKeep(const ScalarNode& node) const {
        const auto* arg = std::get_if<ArgReduce>(&node.value);
        const ElementType type = arg != nullptr ? kernel_[arg->body].type : node.type;
        const Held held = HeldAs(type);
        return held == Held::kF32 || held == Held::kI32;
    }

    void ChooseTile(int64_t rows) {
        int64_t outer = 1;
        for (size_t i = 0; i + 1 < nest_.loops.size(); ++i) {
            const int64_t points = nest_.loops[i].extent.constant().value_or(1);
            outer *= std::clamp<int64_t>(points, 0, kManyWorkgroups);
            outer = std::min(outer, kManyWorkgroups);
        }
        const bool several = kept_.size() > 1 || !kernel_.sequential.empty();
        tile_ = kMostColumns;
        while (tile_ > kLeastColumns &&
               ((several && rows > kMostElements / tile_) ||
                outer * ((extent_ + tile_ - 1) / tile_) < kManyWorkgroups ||
                tile_ / 2 >= extent_)) {
            tile_ /= 2;
        }
    }

    ElementType TypeOfBody(const ScalarNode& node) const {
        const auto* arg = std::get_if<ArgReduce>(&node.value);
        return arg != nullptr ? kernel_[arg->body].type : node.type;
    }

    Ids Neutral(const ScalarNode& node) {
        const auto* arg = std::get_if<ArgReduce>(&node.value);
        const Combine combine =
            arg != nullptr ? arg->combine : std::get<Reduce>(node.value).combine;
        const ElementType type = TypeOfBody(node);
        Ids initial = {ConstantOf(type, NeutralElement(combine, type))};
        if (arg != nullptr) {
            initial.push_back(b_.Uint(0));
        }
        return initial;
    }

    // Code for each of the invocation's columns, with its place in the tile.
    void ForColumns(const std::function<void(Id place)>& code) {
        const Id size = b_.Uint(grid_.local_size());
        b_.For(b_.Uint(0), b_.Uint(static_cast<uint32_t>(tile_)), size, {},
               [&](Id base, std::span<const Id>) {
                   const Id place = b_.Add(base, grid_.lane()), column = b_.Add(first_, place);
                   const Id exists = extent_ % tile_ == 0
                                         ? b_.True()
                                         : b_.ULess(column, index_.EmitExtent(columns_.extent));
                   b_.If(exists, [&] {
                       const ValueScope scope(point_);
                       index_.Bind(columns_.variable, columns_.extent, column);
                       const BoundVariables bound(point_, nest_.variables);
                       code(place);
                       index_.Unbind(columns_.variable);
                   });
                   return Ids();
               });
    }

    Ids Read(const Kept& kept, Id place) {
        Ids values = {b_.Load(b_.ElementPointer(kept.value, place))};
        if (kept.position != 0) {
            values.push_back(b_.Load(b_.ElementPointer(kept.position, place)));
        }
        return values;
    }

    void Keep(const Kept& kept, Id place, std::span<const Id> values) {
        b_.Store(b_.ElementPointer(kept.value, place), values[0]);
        if (kept.position != 0) {
            b_.Store(b_.ElementPointer(kept.position, place), values[1]);
        }
    }

    // The values of the reductions that are needed, of the column at `place`.
    void Bring(const std::vector<bool>& needed, Id place) {
        for (const Kept& kept : kept_) {
            if (!needed[kept.id.value()]) {
                continue;
            }
            const ScalarNode& node = kernel_[kept.id];
            const Ids values = Read(kept, place);
            Id value = values[0];
            if (kept.position != 0) {
                value = WidePosition(values[1]);
            } else if (!IsFloat(node.type)) {
                value = Wrap(node.type, value);
            }
            point_.Add(kept.id, value);
        }
    }

    void ComputeReduction(size_t number) {
        const Kept& kept = kept_[number];
        const ScalarNode& node = kernel_[kept.id];
        const ScalarId body = OperandsOf(node).front();
        ForColumns([&](Id place) { Keep(kept, place, Neutral(node)); });

        const std::span<const Loop> loops = LoopsOf(node);
        const VariableSet variables = scope_.VariablesOf(loops);
        const std::vector<bool> needed = scalars_.Needed({&body, 1});
        const std::vector<bool> varying = scope_.VaryingWith(variables, needed);
        const MergeScope merges(nests_);
        Nest rows = nests_.Collapse(loops, nests_.UsesIn(varying, {}));
        const BoundVariables bound(point_, variables);
        const Loop innermost = rows.loops.back();
        rows.loops.pop_back();
        const auto some = [&](Id row, int64_t count) {
            ForColumns([&](Id place) {
                Bring(needed, place);
                Ids values = Read(kept, place);
                for (int64_t i = 0; i < count; ++i) {
                    const ValueScope scope(point_);
                    index_.Bind(innermost.variable, innermost.extent,
                                b_.Add(row, b_.Uint(static_cast<uint32_t>(i))));
                    values = Combined(kept.id, values, body);
                    index_.Unbind(innermost.variable);
                }
                Keep(kept, place, values);
            });
        };
        loops_.ForNest(rows.loops, {}, [&](std::span<const Id>) {
            const int64_t count = *innermost.extent.constant(), rest = count % kRowsAtOnce;
            const Id whole = b_.Uint(static_cast<uint32_t>(count - rest));
            b_.For(b_.Uint(0), whole, b_.Uint(kRowsAtOnce), {}, [&](Id row, std::span<const Id>) {
                some(row, kRowsAtOnce);
                return Ids();
            });
            if (rest != 0) {
                some(whole, rest);
            }
            return Ids();
        });
    }

    // With the row that is bound.
    Ids Combined(ScalarId id, const Ids& values, ScalarId body) {
        const ScalarNode& node = kernel_[id];
        const Id value = scalars_.Value(body);
        if (const auto* arg = std::get_if<ArgReduce>(&node.value)) {
            const Id at = index_.EmitSimplified(Expr(arg->loop.variable));
            return reductions_.ArgStep(*arg, TypeOfBody(node), values[0], values[1], value, at);
        }
        return {reductions_.Combined(id, values[0], value)};
    }

    void EmitResults() {
        const std::vector<const Store*> stores = StoresOf(kernel_);
        const std::vector<bool> needed = scalars_.Needed(RootsOf(stores));
        const auto store = [&] {
            ForColumns([&](Id place) {
                Bring(needed, place);
                stores_.Emit(stores);
            });
            return Ids();
        };
        if (kernel_.sequential.empty()) {
            store();
            return;
        }
        const Loop& loop = kernel_.sequential[0];
        const BoundVariables bound(point_, scope_.VariablesOf(loop));
        loops_.ForLoop(loop, {}, [&](std::span<const Id>) { return store(); });
    }

    const Nest& nest_;
    const Loop& columns_;
    int64_t extent_ = 0;  // columns
    int64_t tile_ = kMostColumns;
    std::vector<Kept> kept_;  // operands first
    Id first_ = 0;            // the tile's first column
};

}  // namespace

bool EmitAcross(KernelParts& parts, const Nest& nest, std::span<const Expr> uses) {
    if (nest.loops.empty()) {
        return false;
    }
    AcrossMapping mapping(parts, nest);
    if (!mapping.Find(uses)) {
        return false;
    }
    mapping.Run();
    return true;
}

}  // namespace fornax::graph::loop

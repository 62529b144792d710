// Reductions that go across the memory: over the first or a middle axis, of whole rows.
//
// Neighbouring invocations take neighbouring columns. If each went down its own column, a row would
// give a workgroup few cache lines, each row in another page: the processor's own prefetching sees
// nothing, and only as many lines are under way as the first cache has misses. So a workgroup has a
// wide tile of columns, goes through it row by row, and keeps what has been combined so far of each
// column in workgroup memory. An invocation has the same columns everywhere and waits for no other.
#include <algorithm>

#include "compiler/graph/loop/emitter.h"

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

}  // namespace

class AcrossEmitter {
  public:
    AcrossEmitter(Emitter& emitter, const Nest& nest)
        : e_(emitter), b_(emitter.b_), nest_(nest), columns_(nest.loops.back()) {}

    // False if the kernel is none for this.
    bool Find(std::span<const Expr> uses) {
        const Kernel& kernel = e_.kernel_;
        const std::optional<int64_t> extent = columns_.extent.constant();
        if (!extent || *extent < kLeastColumns || *extent > INT32_MAX ||
            kernel.sequential.size() > 1) {
            return false;
        }
        extent_ = *extent;
        if (!LieSideBySide(uses)) {
            return false;
        }
        const std::vector<bool> needed = e_.Needed(RootsOf(e_.AllStores()));
        int64_t rows = 1;
        for (size_t i = 0; i < needed.size(); ++i) {
            const ScalarNode& node = kernel.scalars[i];
            const auto* load = std::get_if<Load>(&node.value);
            if (!needed[i]) {
                continue;
            }
            if (load != nullptr && kernel[load->buffer].written) {
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
            if (points < kLeastRows || (e_.scope_.free[i] & ~e_.scope_.parallel) != 0 ||
                !CanKeep(node)) {
                return false;
            }
            rows = std::max(rows, points);
            reductions_.push_back({ScalarId(i)});
        }
        if (reductions_.empty() || reductions_.size() > kMostReductions) {
            return false;
        }
        ChooseTile(rows);
        const uint64_t bytes =
            2 * sizeof(uint32_t) * reductions_.size() * static_cast<uint64_t>(tile_);
        return bytes <= e_.target_.max_workgroup_memory;
    }

    void Run() {
        const std::vector<Loop> outer(nest_.loops.begin(), nest_.loops.end() - 1);
        e_.local_size_ = e_.target_.subgroup_size;
        e_.group_ = {e_.local_size_, 1, 1};
        for (Kept& kept : reductions_) {
            const auto length = static_cast<uint32_t>(tile_);
            const ScalarNode& node = e_.kernel_[kept.id];
            if (const auto* arg = std::get_if<ArgReduce>(&node.value)) {
                kept.value = b_.WorkgroupArray(e_.TypeFor(e_.kernel_[arg->body].type), length);
                kept.position = b_.WorkgroupArray(b_.U32(), length);
            } else {
                kept.value = b_.WorkgroupArray(e_.TypeFor(node.type), length);
            }
        }
        const Expr tiles((extent_ + tile_ - 1) / tile_);
        const Id workgroup = e_.WorkgroupIndex(PointsOf(outer) * tiles);
        e_.lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
        b_.If(e_.in_grid_ == 0 ? b_.True() : e_.in_grid_, [&] {
            e_.OpenScope();
            Id tile = workgroup;
            if (!outer.empty()) {
                const Id count = e_.EmitExpr(tiles);
                tile = b_.UMod(workgroup, count);
                e_.BindFromIndex(outer, b_.UDiv(workgroup, count));
            }
            first_ = b_.Mul(tile, b_.Uint(static_cast<uint32_t>(tile_)));
            for (size_t i = 0; i < reductions_.size(); ++i) {
                ComputeReduction(i);
            }
            EmitResults();
            e_.CloseScope();
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
        for (const ScalarNode& node : e_.kernel_.scalars) {
            const auto* load = std::get_if<Load>(&node.value);
            for (const Loop& loop : e_.scope_.variables) {
                const bool parallel =
                    (e_.scope_.parallel >> *e_.scope_.Find(loop.variable) & 1) != 0;
                if (load == nullptr || parallel) {
                    continue;
                }
                const Expr offset = e_.Simplified(e_.Offset(load->buffer, load->index));
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
        const ElementType type = arg != nullptr ? e_.kernel_[arg->body].type : node.type;
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
        const bool several = reductions_.size() > 1 || !e_.kernel_.sequential.empty();
        tile_ = kMostColumns;
        while (tile_ > kLeastColumns &&
               ((several && rows > kMostElements / tile_) ||
                outer * ((extent_ + tile_ - 1) / tile_) < kManyWorkgroups ||
                tile_ / 2 >= extent_)) {
            tile_ /= 2;
        }
    }

    ElementType TypeOf(const ScalarNode& node) const {
        const auto* arg = std::get_if<ArgReduce>(&node.value);
        return arg != nullptr ? e_.kernel_[arg->body].type : node.type;
    }

    Ids Neutral(const ScalarNode& node) {
        const auto* arg = std::get_if<ArgReduce>(&node.value);
        const Combine combine =
            arg != nullptr ? arg->combine : std::get<Reduce>(node.value).combine;
        const ElementType type = TypeOf(node);
        Ids initial = {e_.ConstantOf(type, NeutralElement(combine, type))};
        if (arg != nullptr) {
            initial.push_back(b_.Uint(0));
        }
        return initial;
    }

    // Code for each of the invocation's columns, with its place in the tile.
    void ForColumns(const std::function<void(Id place)>& code) {
        const Id size = b_.Uint(e_.local_size_);
        b_.For(b_.Uint(0), b_.Uint(static_cast<uint32_t>(tile_)), size, {},
               [&](Id base, std::span<const Id>) {
                   const Id place = b_.Add(base, e_.lane_), column = b_.Add(first_, place);
                   const Id exists = extent_ % tile_ == 0
                                         ? b_.True()
                                         : b_.ULess(column, e_.EmitExtent(columns_.extent));
                   b_.If(exists, [&] {
                       e_.OpenScope();
                       e_.Bind(columns_.variable, columns_.extent, column);
                       const VariableSet bound = e_.bound_variables_;
                       e_.bound_variables_ |= nest_.variables;
                       code(place);
                       e_.bound_variables_ = bound;
                       e_.Unbind(columns_.variable);
                       e_.CloseScope();
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
        for (const Kept& kept : reductions_) {
            if (!needed[kept.id.value()]) {
                continue;
            }
            const ScalarNode& node = e_.kernel_[kept.id];
            const Ids values = Read(kept, place);
            Id value = values[0];
            if (kept.position != 0) {
                value = e_.WidePosition(values[1]);
            } else if (!IsFloat(node.type)) {
                value = e_.Wrap(node.type, value);
            }
            e_.scopes_.back().emplace(kept.id.value(), value);
        }
    }

    void ComputeReduction(size_t number) {
        const Kept& kept = reductions_[number];
        const ScalarNode& node = e_.kernel_[kept.id];
        const ScalarId body = OperandsOf(node).front();
        ForColumns([&](Id place) { Keep(kept, place, Neutral(node)); });

        const std::span<const Loop> loops = LoopsOf(node);
        VariableSet variables = 0;
        for (const Loop& loop : loops) {
            variables |= VariableSet{1} << *e_.scope_.Find(loop.variable);
        }
        const std::vector<bool> needed = e_.Needed({&body, 1});
        std::vector<bool> varying = needed;
        for (size_t i = 0; i < varying.size(); ++i) {
            varying[i] = varying[i] && (e_.scope_.free[i] & variables) != 0;
        }
        const std::vector<Emitter::Merge> merges = e_.merges_;
        Nest rows = e_.Collapse(loops, e_.UsesIn(varying, {}));
        const VariableSet bound = e_.bound_variables_;
        e_.bound_variables_ |= variables;
        const Loop innermost = rows.loops.back();
        rows.loops.pop_back();
        const auto some = [&](Id row, int64_t count) {
            ForColumns([&](Id place) {
                Bring(needed, place);
                Ids values = Read(kept, place);
                for (int64_t i = 0; i < count; ++i) {
                    e_.OpenScope();
                    e_.Bind(innermost.variable, innermost.extent,
                            b_.Add(row, b_.Uint(static_cast<uint32_t>(i))));
                    values = Combined(node, values, body);
                    e_.Unbind(innermost.variable);
                    e_.CloseScope();
                }
                Keep(kept, place, values);
            });
        };
        e_.ForNest(rows, 0, {}, [&](std::span<const Id>) {
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
        e_.bound_variables_ = bound;
        e_.merges_ = merges;
    }

    // With the row that is bound.
    Ids Combined(const ScalarNode& node, const Ids& values, ScalarId body) {
        const Id value = e_.Value(body);
        if (const auto* arg = std::get_if<ArgReduce>(&node.value)) {
            const Id at = e_.EmitExpr(e_.Simplified(Expr(arg->loop.variable)));
            return e_.ArgStep(*arg, TypeOf(node), values[0], values[1], value, at);
        }
        return {e_.Combined(e_.IdOf(node), values[0], value)};
    }

    void EmitResults() {
        const std::vector<const Store*> stores = e_.AllStores();
        const std::vector<bool> needed = e_.Needed(RootsOf(stores));
        const auto store = [&] {
            ForColumns([&](Id place) {
                Bring(needed, place);
                e_.EmitStores(stores);
            });
            return Ids();
        };
        if (e_.kernel_.sequential.empty()) {
            store();
            return;
        }
        const Loop& loop = e_.kernel_.sequential[0];
        const VariableSet bit = VariableSet{1} << *e_.scope_.Find(loop.variable);
        e_.bound_variables_ |= bit;
        e_.ForNest({{loop}, bit}, 0, {}, [&](std::span<const Id>) { return store(); });
        e_.bound_variables_ &= ~bit;
    }

    Emitter& e_;
    spirv::ModuleBuilder& b_;
    const Nest& nest_;
    const Loop& columns_;
    int64_t extent_ = 0;  // columns
    int64_t tile_ = kMostColumns;
    std::vector<Kept> reductions_;  // operands first
    Id first_ = 0;                  // the tile's first column
};

bool Emitter::EmitAcross(const Nest& nest, std::span<const Expr> uses) {
    if (nest.loops.empty()) {
        return false;
    }
    AcrossEmitter emitter(*this, nest);
    if (!emitter.Find(uses)) {
        return false;
    }
    emitter.Run();
    return true;
}

}  // namespace fornax::graph::loop

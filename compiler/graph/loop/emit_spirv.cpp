// From a loop kernel to a module: which invocation computes which points.
#include "compiler/graph/loop/emit_spirv.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "compiler/graph/loop/emitter.h"
#include "compiler/graph/loop/in_place.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

constexpr uint32_t kMaxLocalSize = 256;
constexpr uint32_t kTile = 32;     // invocations along each of two loops
constexpr int64_t kMinLanes = 32;  // of the loops along the invocations, if there are so many

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

Emitter::Emitter(const Kernel& kernel, ModuleCode& module)
    : ValueOps(module),
      kernel_(kernel),
      scope_(FindScope(kernel)),
      functions_(module),
      conversions_(module) {
    softmax_ = FindSoftmaxReductions(kernel_, scope_);
    domain_.ranges = kernel.sizes;
    // Twice, because extents may have variables that come later.
    for (int i = 0; i < 2; ++i) {
        for (const Loop& loop : scope_.variables) {
            domain_.AddVariable(loop.variable, loop.extent);
        }
    }
}

VariableSet Emitter::FreeOf(const Store& store) const {
    VariableSet free = scope_.free[store.value.value()];
    if (store.condition.valid()) {
        free |= scope_.free[store.condition.value()];
    }
    for (const Expr& expr : store.index) {
        free |= scope_.FreeIn(expr);
    }
    return free;
}

Id Emitter::WorkgroupIndex(const Expr& count) {
    const Id id = b_.BuiltIn(spv::BuiltIn::WorkgroupId);
    const Id x = b_.Component(id, 0);
    const int64_t most = target_.max_workgroup_count;
    const Range range = count.Bounds(domain_.ranges);
    if (range.high <= most) {
        workgroups_ = {count, 1, 1};
        return x;
    }
    workgroups_ = {Min(count, most), CeilDiv(count, most), 1};
    CheckNarrow(count);
    const Id index = b_.Add(b_.Mul(b_.Component(id, 1), U(target_.max_workgroup_count)), x);
    in_grid_ = b_.ULess(index, EmitExtent(count));
    return index;
}

void Emitter::BindFromIndex(std::span<const Loop> loops, Id index) {
    for (size_t i = loops.size(); i-- > 0;) {
        const Id extent = EmitExpr(loops[i].extent);
        const Id value = i == 0 ? index : b_.UMod(index, extent);
        index = i == 0 ? index : b_.UDiv(index, extent);
        Bind(loops[i].variable, loops[i].extent, value);
    }
}

std::vector<const Store*> Emitter::AllStores() const {
    std::vector<const Store*> stores;
    for (const Store& store : kernel_.stores) {
        stores.push_back(&store);
    }
    return stores;
}

void Emitter::ComputeWrites(std::span<const Store* const> stores, std::vector<Write>& writes) {
    for (const Store* store : stores) {
        const Access access = AccessOf(store->buffer, store->index);
        Id condition = EmitChecks(access);
        if (store->condition.valid()) {
            condition = b_.And(condition, Value(store->condition));
        }
        const Id value =
            conversions_.ToStorage(Value(store->value), kernel_[store->buffer].type.element);
        writes.push_back({condition, EmitExpr(access.offset), value, store->buffer});
    }
}

void Emitter::Do(std::span<const Write> writes) {
    for (const Write& write : writes) {
        b_.If(write.condition, [&] {
            b_.Store(b_.ElementPointer(ArrayOf(write.buffer), write.offset), write.value);
        });
    }
}

// All values before any store: a load sees what earlier points stored.
void Emitter::EmitStores(std::span<const Store* const> stores) {
    std::vector<Write> writes;
    ComputeWrites(stores, writes);
    Do(writes);
}

void Emitter::EmitPoint(size_t sequential) {
    const std::vector<const Store*> stores = AllStores();
    if (sequential == kernel_.sequential.size()) {
        EmitStores(stores);
        return;
    }
    Hoist(Needed(RootsOf(stores)));
    const Loop& loop = kernel_.sequential[sequential];
    const VariableSet bit = VariableSet{1} << *scope_.Find(loop.variable);
    bound_variables_ |= bit;
    ForNest({{loop}, bit}, 0, {}, [&](std::span<const Id>) {
        EmitPoint(sequential + 1);
        return Ids();
    });
    bound_variables_ &= ~bit;
}

void Emitter::EmitFlat() {
    const std::vector<bool> needed = Needed(RootsOf(AllStores()));
    const Nest nest = Collapse(kernel_.parallel, UsesIn(needed, kernel_.stores));
    const std::vector<Expr> uses = UsesIn(needed, kernel_.stores);
    if (const std::optional<Runs> runs = FindRuns(nest, uses, needed)) {
        EmitRuns(nest, *runs);
        return;
    }
    if (EmitAcross(nest, uses)) {
        return;
    }
    if (const std::optional<size_t> other = TiledLoop(nest, uses)) {
        EmitTiles(nest, *other);
        return;
    }
    if (EmitShortRows(nest, uses)) {
        return;
    }
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
    local_size_ = LocalSizeFor(points);
    group_ = {local_size_, 1, 1};
    const Expr chunks = CeilDiv(points, local_size_).Simplify(domain_);
    const Id workgroup = WorkgroupIndex(PointsOf(outer) * chunks);
    lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
    b_.If(in_grid_ == 0 ? b_.True() : in_grid_, [&] {
        Id chunk = workgroup;
        if (!outer.empty()) {
            const Id count = EmitExpr(chunks);
            chunk = b_.UMod(workgroup, count);
            BindFromIndex(outer, b_.UDiv(workgroup, count));
        }
        const Id point = b_.Add(b_.Mul(chunk, U(local_size_)), lane_);
        b_.If(EmitBelow(point, points, local_size_), [&] {
            OpenScope();
            BindFromIndex(inner, point);
            bound_variables_ |= nest.variables;
            EmitPoint(0);
            CloseScope();
        });
    });
}

// Whether a point of a chunk of `size` is one of `points`.
Id Emitter::EmitBelow(Id point, const Expr& points, uint32_t size) {
    const std::optional<int64_t> constant = points.constant();
    const bool whole = constant && *constant % size == 0;
    return whole ? b_.True() : b_.ULess(point, EmitExtent(points));
}

// A loop beside the innermost one along which elements lie side by side that do not along the
// innermost one, as in a transposition.
std::optional<size_t> Emitter::TiledLoop(const Nest& nest, std::span<const Expr> uses) const {
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
void Emitter::EmitTiles(const Nest& nest, size_t other) {
    const Loop& x_loop = nest.loops.back();
    const Loop& y_loop = nest.loops[other];
    std::vector<Loop> outer = nest.loops;
    outer.pop_back();
    outer.erase(outer.begin() + static_cast<std::ptrdiff_t>(other));
    local_size_ = kTile * kTile;
    group_ = {kTile, kTile, 1};
    const Expr x_tiles = CeilDiv(x_loop.extent, kTile), y_tiles = CeilDiv(y_loop.extent, kTile);
    const Id workgroup = WorkgroupIndex(PointsOf(outer) * x_tiles * y_tiles);
    const Id local = b_.BuiltIn(spv::BuiltIn::LocalInvocationId);
    lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
    b_.If(in_grid_ == 0 ? b_.True() : in_grid_, [&] {
        const Id x_count = EmitExpr(x_tiles), y_count = EmitExpr(y_tiles);
        const Id x_tile = b_.UMod(workgroup, x_count), rest = b_.UDiv(workgroup, x_count);
        if (!outer.empty()) {
            BindFromIndex(outer, b_.UDiv(rest, y_count));
        }
        const Id y_tile = outer.empty() ? rest : b_.UMod(rest, y_count);
        const Id x = b_.Add(b_.Mul(x_tile, U(kTile)), b_.Component(local, 0));
        const Id y = b_.Add(b_.Mul(y_tile, U(kTile)), b_.Component(local, 1));
        b_.If(b_.And(EmitBelow(x, x_loop.extent, kTile), EmitBelow(y, y_loop.extent, kTile)), [&] {
            OpenScope();
            Bind(y_loop.variable, y_loop.extent, y);
            Bind(x_loop.variable, x_loop.extent, x);
            bound_variables_ |= nest.variables;
            EmitPoint(0);
            CloseScope();
        });
    });
}

// Rows shorter than kMinLanes that are read with a small stride begin with a vector each. Where
// vectors cross the ends of rows, what they read has no pattern and is loaded one by one.
bool Emitter::EmitShortRows(const Nest& nest, std::span<const Expr> uses) {
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
    local_size_ = kMaxLocalSize;
    group_ = {local_size_, 1, 1};
    const Expr rows = PointsOf(outer);
    const Id workgroup = WorkgroupIndex(CeilDiv(rows, together).Simplify(domain_));
    lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
    b_.If(in_grid_ == 0 ? b_.True() : in_grid_, [&] {
        const Id index = b_.Add(b_.Mul(workgroup, U(together)), b_.UDiv(lane_, U(lanes)));
        const Id place = b_.UMod(lane_, U(lanes));
        const Id is_in_row = b_.ULess(place, U(static_cast<uint32_t>(extent)));
        b_.If(b_.And(EmitBelow(index, rows, together), is_in_row), [&] {
            OpenScope();
            BindFromIndex(outer, index);
            Bind(row.variable, row.extent, place);
            bound_variables_ |= nest.variables;
            EmitPoint(0);
            CloseScope();
        });
    });
    return true;
}

bool Emitter::HasNoNegativeExtents() const {
    return std::all_of(scope_.variables.begin(), scope_.variables.end(), [&](const Loop& loop) {
        return domain_.IsNotNegative(Simplified(loop.extent));
    });
}

// In Vulkan's memory model, buffers share no bytes unless they say so.
void Emitter::MarkAliases() {
    if (!b_.HasVulkanMemoryModel()) {
        return;
    }
    std::set<size_t> aliased;
    for (size_t read = 0; read < buffers_.size(); ++read) {
        for (size_t written = 0; written < buffers_.size(); ++written) {
            if (kernel_.buffers[written].written &&
                MayShareBytes(kernel_, BufferId(read), BufferId(written))) {
                aliased.insert({read, written});
            }
        }
    }
    for (const size_t buffer : aliased) {
        b_.Decorate(buffers_[buffer], spv::Decoration::Aliased);
    }
}

Result<Module> Emitter::Run() {
    for (const Buffer& buffer : kernel_.buffers) {
        const Expr volume = buffer.type.shape.Volume();
        const std::optional<int64_t> constant = volume.constant();
        if (constant && *constant > INT32_MAX) {
            return Error{
                ErrorCode::kUnsupported,
                fmt::format("The buffer {} of the kernel {} has {} elements, more than {}.",
                            buffer.name, kernel_.name, *constant, INT32_MAX)};
        }
        if (!constant) {
            limits_.push_back(volume);
        }
    }
    b_.Begin();
    if (target_.signed_zero_inf_nan_preserve) {
        b_.Capability(spv::Capability::SignedZeroInfNanPreserve);
        b_.Extension("SPV_KHR_float_controls");
        b_.ExecutionMode(spv::ExecutionMode::SignedZeroInfNanPreserve, {32});
    }
    OpenScope();
    for (uint32_t i = 0; i < kernel_.buffers.size(); ++i) {
        const Buffer& buffer = kernel_.buffers[i];
        buffers_.push_back(
            b_.StorageBuffer(i, conversions_.StorageType(buffer.type.element), buffer.written));
    }
    for (const Buffer& local : kernel_.locals) {
        const int64_t count = *local.type.shape.Volume().constant();
        locals_.push_back(b_.WorkgroupArray(conversions_.StorageType(local.type.element),
                                            static_cast<uint32_t>(count)));
    }
    const std::vector<Symbol> sizes = SizeSymbols(kernel_);
    const Ids values = b_.PushConstants(static_cast<uint32_t>(sizes.size()));
    for (size_t i = 0; i < sizes.size(); ++i) {
        bound_[sizes[i]] = {values[i], 0};
    }
    if (EmitPhases() || EmitProduct() || EmitAttention()) {
        // Done.
    } else if (CanMapRows()) {
        EmitRows();
    } else if (EmitWindow()) {
        // Done.
    } else {
        EmitFlat();
    }
    MarkAliases();
    b_.SetLocalSize(group_);
    if (module_.rejection) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The kernel {} is not for the device: {}.", kernel_.name,
                                 *module_.rejection)};
    }
    std::sort(limits_.begin(), limits_.end(),
              [](const Expr& a, const Expr& b) { return Expr::Compare(a, b) < 0; });
    limits_.erase(std::unique(limits_.begin(), limits_.end()), limits_.end());
    return Module{b_.Finish(), workgroups_, limits_, local_size_};
}

Result<Module> EmitSpirv(const Kernel& kernel, const Target& target) {
    ModuleCode module(target);
    return Emitter(kernel, module).Run();
}

}  // namespace fornax::graph::loop

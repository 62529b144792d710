// The row mapping (emit_rows.h).
#include "compiler/graph/loop/emit_rows.h"

#include <algorithm>

#include "compiler/graph/loop/kept_values.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

constexpr uint32_t kTogether = 2;
// With more points, rows with their kept values and what is prefetched exceed the L1 cache.
constexpr int64_t kMostPointsTogether = 1024;
constexpr int64_t kMostPointsWithKept = 512;
// There are workgroups enough.
constexpr int64_t kLeastRowsTogether = 256;

int64_t ConstantPoints(std::span<const Loop> loops) {
    return PointsOf(loops).constant().value_or(INT64_MAX);
}

// Whether points only meet in reductions.
bool CanMapRows(const Kernel& kernel) {
    if (kernel.mapping != Mapping::kRow || !kernel.sequential.empty() ||
        LoadsWhatIsWritten(kernel)) {
        return false;
    }
    // Stores of a row and of its points to one buffer would lose their order.
    std::map<uint32_t, size_t> stores;
    for (const Store& store : kernel.stores) {
        if (++stores[store.buffer.value()] > 1) {
            return false;
        }
    }
    return true;
}

class RowMapping final : MappingPart, ScalarStorage {
  public:
    explicit RowMapping(KernelParts& parts) : MappingPart(parts) {}
    void Emit();

  private:
    struct Row {
        uint32_t number = 0;         // in the workgroup
        Ids place;                   // of the row loops' variables
        CurrentPoint::Values known;  // scalars that are one value in the row
    };
    // Values that are kept in workgroup memory, one a point.
    struct Kept {
        Id array = 0;
        Symbol point;
        uint32_t points = 0;
    };

    Id Find(ScalarId id) override;
    void Keep(ScalarId id, Id value) override;
    Id PlaceOf(const Kept& kept);

    uint32_t RowsTogether(const Nest& rows,
                          std::span<const Loop> lane_loops,
                          const std::vector<bool>& needed) const;
    void InRow(const Nest& rows, Row& row, bool keep, const std::function<void()>& code);
    void ReduceRows(const Nest& rows, std::vector<Row>& each, const std::vector<bool>& needed);
    Ids ReduceTogether(const Nest& rows, std::vector<Row>& each, ScalarId id);
    void EmitRowStores(std::span<const Store* const> stores, std::span<const Loop> lane_loops);
    VariableSet FreeOf(const Store& store) const;

    uint32_t row_ = 0;                                   // the row whose code is being written
    std::map<uint32_t, Kept> writes_kept_, reads_kept_;  // by scalar
};

}  // namespace

// Rows that a workgroup has.
uint32_t RowMapping::RowsTogether(const Nest& rows,
                                  std::span<const Loop> lane_loops,
                                  const std::vector<bool>& needed) const {
    const int64_t count = ConstantPoints(rows.loops);
    const bool keeps = !FindKeptValues(kernel_, scope_).empty();
    const int64_t most_points = keeps ? kMostPointsWithKept : kMostPointsTogether;
    if (count % kTogether != 0 || count < kLeastRowsTogether || count == INT64_MAX ||
        ConstantPoints(lane_loops) > most_points) {
        return 1;
    }
    bool reduces = false;
    for (size_t i = 0; i < needed.size(); ++i) {
        const ScalarNode& node = kernel_.scalars[i];
        if (!needed[i] || LoopsOf(node).empty()) {
            continue;
        }
        if ((scope_.free[i] & ~rows.variables) != 0 ||
            !std::holds_alternative<Reduce>(node.value) ||
            ConstantPoints(LoopsOf(node)) > most_points) {
            return 1;
        }
        reduces = true;
    }
    return reduces && loops_.SeveralOf(needed, ~rows.variables) > 1 ? kTogether : 1;
}

void RowMapping::Emit() {
    const std::span<const Loop> row_loops(kernel_.parallel.data(), kernel_.row_loops);
    const std::span<const Loop> lane_loops(kernel_.parallel.data() + kernel_.row_loops,
                                           kernel_.parallel.size() - kernel_.row_loops);
    const VariableSet lane_variables = scope_.VariablesOf(lane_loops);
    std::vector<const Store*> row_stores, lane_stores;
    for (const Store& store : kernel_.stores) {
        ((FreeOf(store) & lane_variables) == 0 ? row_stores : lane_stores).push_back(&store);
    }
    const std::vector<bool> needed = scalars_.Needed(RootsOf(StoresOf(kernel_)));
    const Nest rows = nests_.Collapse(row_loops, nests_.UsesIn(needed, kernel_.stores));
    const uint32_t together = RowsTogether(rows, lane_loops, needed);
    grid_.SetLocalSize(target_.subgroup_size);
    // An invocation has the same points of the row in reductions as it has for the stores.
    for (const KeptValue& value : FindKeptValues(kernel_, scope_)) {
        const Loop& lane = lane_loops.front();
        const auto points = static_cast<uint32_t>(*lane.extent.constant());
        const Id array = b_.WorkgroupArray(b_.F32(), together * points);
        writes_kept_.emplace(value.reduced.value(), Kept{array, value.point, points});
        reads_kept_.emplace(value.stored.value(), Kept{array, lane.variable, points});
    }
    const StorageScope kept(scalars_, *this);
    const Expr workgroups = FloorDiv(PointsOf(rows.loops), together).Simplify(domain_);
    const Id workgroup = grid_.WorkgroupIndex(together == 1 ? PointsOf(rows.loops) : workgroups);
    grid_.LoadLane();
    b_.If(grid_.inside(), [&] {
        std::vector<Row> each(together);
        const ValueScope scope(point_);
        {
            const UniformCode uniform(point_, true);
            scalars_.Hoist(needed);  // what all rows share
        }
        for (uint32_t i = 0; i < together; ++i) {
            each[i].number = i;
            const Id first = together == 1 ? workgroup : b_.Mul(workgroup, U(together));
            index_.BindFromIndex(rows.loops, i == 0 ? first : b_.Add(first, U(i)));
            for (const Loop& loop : rows.loops) {
                each[i].place.push_back(point_.ValueOf(loop.variable));
            }
            index_.Unbind(rows.loops);
        }
        ReduceRows(rows, each, needed);
        for (Row& row : each) {
            if (!row_stores.empty()) {
                InRow(rows, row, true, [&] { EmitRowStores(row_stores, lane_loops); });
            }
        }
        if (!lane_stores.empty()) {
            const Nest lanes = nests_.Collapse(lane_loops, nests_.UsesIn(needed, kernel_.stores));
            if (together == 1) {
                InRow(rows, each[0], true, [&] { scalars_.Hoist(needed); });
            }
            point_.AddVariables(lanes.variables);
            loops_.ForLanes(
                lanes, {},
                [&](std::span<const Id>) {
                    std::vector<StoreCode::Write> writes;
                    for (Row& row : each) {
                        InRow(rows, row, false, [&] { stores_.Compute(lane_stores, writes); });
                    }
                    stores_.Do(writes);
                    return Ids();
                },
                1,
                loops_.SeveralOf(scalars_.Needed(RootsOf(lane_stores)), lanes.variables) /
                    together);
        }
    });
}

// Code with a row's variables bound. What it computes is kept for the row, unless it is in a loop.
void RowMapping::InRow(const Nest& rows, Row& row, bool keep, const std::function<void()>& code) {
    for (size_t i = 0; i < rows.loops.size(); ++i) {
        index_.Bind(rows.loops[i].variable, rows.loops[i].extent, row.place[i]);
    }
    const BoundVariables bound(point_, rows.variables);
    row_ = row.number;
    point_.Open(std::move(row.known));
    if (keep) {
        code();
    } else {
        const ValueScope scope(point_);
        code();
    }
    row.known = point_.Close();
    index_.Unbind(rows.loops);
}

// What is one value in a row: for all rows, one scalar after the other.
void RowMapping::ReduceRows(const Nest& rows,
                            std::vector<Row>& each,
                            const std::vector<bool>& needed) {
    if (each.size() == 1) {
        InRow(rows, each[0], true, [&] {
            const UniformCode together(point_, true);
            scalars_.Hoist(needed);
        });
        return;
    }
    const VariableSet bound = point_.variables() | rows.variables;
    const UniformCode together(point_, true);
    for (size_t i = 0; i < needed.size(); ++i) {
        if (!needed[i] || (scope_.free[i] & ~bound) != 0 ||
            (scope_.free[i] & rows.variables) == 0) {
            continue;
        }
        const ScalarId id(static_cast<uint32_t>(i));
        const auto* reduce = std::get_if<Reduce>(&kernel_[id].value);
        const Ids results = reduce != nullptr ? ReduceTogether(rows, each, id) : Ids();
        for (size_t r = 0; r < each.size(); ++r) {
            if (reduce != nullptr) {
                each[r].known.emplace(id.value(), results[r]);
            }
            InRow(rows, each[r], true, [&] { scalars_.HoistScalar(id); });
        }
    }
}

Ids RowMapping::ReduceTogether(const Nest& rows, std::vector<Row>& each, ScalarId id) {
    const auto& reduce = std::get<Reduce>(kernel_[id].value);
    const ElementType type = kernel_[id].type;
    const size_t ways = std::max<size_t>(loops_.WaysOf(reduce.loops) / each.size(), 1);
    const Ids initial(ways * each.size(), ConstantOf(type, NeutralElement(reduce.combine, type)));
    const Ids sums = reductions_.Reduction(
        reduce.loops, {&reduce.body, 1}, initial, true,
        [&](std::span<const Id> carried) {
            Ids next;
            for (Row& row : each) {
                InRow(rows, row, false, [&] {
                    next.push_back(reductions_.Combined(id, carried[next.size()],
                                                        scalars_.Value(reduce.body)));
                });
            }
            return next;
        },
        ways);
    Ids results;
    for (size_t r = 0; r < each.size(); ++r) {
        Id result = sums[r];
        for (size_t way = 1; way < ways; ++way) {
            result = reductions_.Combined(id, result, sums[way * each.size() + r]);
        }
        result = reductions_.CombinedOfWorkgroup(id, result);
        results.push_back(IsFloat(type) ? result : Wrap(type, result));
    }
    return results;
}

void RowMapping::EmitRowStores(std::span<const Store* const> stores,
                               std::span<const Loop> lane_loops) {
    Id once = Test(Op::OpIEqual, grid_.lane(), U(0));
    for (const Loop& loop : lane_loops) {
        once = b_.And(once, b_.ULess(U(0), index_.EmitExtent(loop.extent)));
    }
    b_.If(once, [&] {
        const ValueScope scope(point_);
        stores_.Emit(stores);
    });
}

VariableSet RowMapping::FreeOf(const Store& store) const {
    VariableSet free = scope_.free[store.value.value()];
    if (store.condition.valid()) {
        free |= scope_.free[store.condition.value()];
    }
    for (const Expr& expr : store.index) {
        free |= scope_.FreeIn(expr);
    }
    return free;
}

// --- Values that are kept
// -------------------------------------------------------------------------

Id RowMapping::Find(ScalarId id) {
    const auto kept = reads_kept_.find(id.value());
    if (kept == reads_kept_.end()) {
        return 0;
    }
    const Id value = b_.Load(PlaceOf(kept->second));
    point_.Add(id, value);
    return value;
}

void RowMapping::Keep(ScalarId id, Id value) {
    if (const auto kept = writes_kept_.find(id.value()); kept != writes_kept_.end()) {
        b_.Store(PlaceOf(kept->second), value);
    }
}

Id RowMapping::PlaceOf(const Kept& kept) {
    const Id point = index_.EmitSimplified(Expr(kept.point));
    return b_.ElementPointer(kept.array, b_.Add(point, U(row_ * kept.points)));
}

bool EmitRows(KernelParts& parts) {
    if (!CanMapRows(parts.code.kernel)) {
        return false;
    }
    RowMapping(parts).Emit();
    return true;
}

}  // namespace fornax::graph::loop

// The row mapping: a workgroup for each row, or for two short ones.
//
// A short row is a chain of steps that wait for each other: its reductions end with additions
// across the lanes, which the next loop over the row needs. With two rows at once each step of one
// has work of the other beside it, and what they have in common is loaded once.
#include <algorithm>

#include "compiler/graph/loop/emitter.h"
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

}  // namespace

// Rows are for kernels whose points only meet in reductions.
bool Emitter::CanMapRows() const {
    if (kernel_.mapping != Mapping::kRow || !kernel_.sequential.empty()) {
        return false;
    }
    for (const ScalarNode& node : kernel_.scalars) {
        const auto* load = std::get_if<Load>(&node.value);
        if (load != nullptr && kernel_[load->buffer].written) {
            return false;
        }
    }
    // Stores of a row and of its points to one buffer would lose their order.
    std::map<uint32_t, size_t> stores;
    for (const Store& store : kernel_.stores) {
        if (++stores[store.buffer.value()] > 1) {
            return false;
        }
    }
    return true;
}

// Rows that a workgroup has.
uint32_t Emitter::RowsTogether(const Nest& rows,
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
    return reduces && SeveralOf(needed, ~rows.variables) > 1 ? kTogether : 1;
}

void Emitter::EmitRows() {
    const std::span<const Loop> row_loops(kernel_.parallel.data(), kernel_.row_loops);
    const std::span<const Loop> lane_loops(kernel_.parallel.data() + kernel_.row_loops,
                                           kernel_.parallel.size() - kernel_.row_loops);
    VariableSet lane_variables = 0;
    for (const Loop& loop : lane_loops) {
        lane_variables |= VariableSet{1} << *scope_.Find(loop.variable);
    }
    std::vector<const Store*> row_stores, lane_stores;
    for (const Store& store : kernel_.stores) {
        ((FreeOf(store) & lane_variables) == 0 ? row_stores : lane_stores).push_back(&store);
    }
    const std::vector<bool> needed = Needed(RootsOf(AllStores()));
    const Nest rows = Collapse(row_loops, UsesIn(needed, kernel_.stores));
    const uint32_t together = RowsTogether(rows, lane_loops, needed);
    local_size_ = target_.subgroup_size;
    group_ = {local_size_, 1, 1};
    // An invocation has the same points of the row in reductions as it has for the stores.
    for (const KeptValue& value : FindKeptValues(kernel_, scope_)) {
        const Loop& lane = lane_loops.front();
        const auto points = static_cast<uint32_t>(*lane.extent.constant());
        const Id array = b_.WorkgroupArray(b_.F32(), together * points);
        writes_kept_.emplace(value.reduced.value(), Kept{array, value.point, points});
        reads_kept_.emplace(value.stored.value(), Kept{array, lane.variable, points});
    }
    const Expr workgroups = FloorDiv(PointsOf(rows.loops), together).Simplify(domain_);
    const Id workgroup = WorkgroupIndex(together == 1 ? PointsOf(rows.loops) : workgroups);
    lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
    b_.If(in_grid_ == 0 ? b_.True() : in_grid_, [&] {
        std::vector<Row> each(together);
        OpenScope();
        uniform_ = true;
        Hoist(needed);  // what all rows share
        uniform_ = false;
        for (uint32_t i = 0; i < together; ++i) {
            each[i].number = i;
            const Id first = together == 1 ? workgroup : b_.Mul(workgroup, U(together));
            BindFromIndex(rows.loops, i == 0 ? first : b_.Add(first, U(i)));
            for (const Loop& loop : rows.loops) {
                each[i].place.push_back(bound_.at(loop.variable).value);
                Unbind(loop.variable);
            }
        }
        ReduceRows(rows, each, needed);
        for (Row& row : each) {
            if (!row_stores.empty()) {
                InRow(rows, row, true, [&] { EmitRowStores(row_stores, lane_loops); });
            }
        }
        if (!lane_stores.empty()) {
            const Nest lanes = Collapse(lane_loops, UsesIn(needed, kernel_.stores));
            if (together == 1) {
                InRow(rows, each[0], true, [&] { Hoist(needed); });
            }
            bound_variables_ |= lanes.variables;
            ForLanes(
                lanes, {},
                [&](std::span<const Id>) {
                    std::vector<Write> writes;
                    for (Row& row : each) {
                        InRow(rows, row, false, [&] { ComputeWrites(lane_stores, writes); });
                    }
                    Do(writes);
                    return Ids();
                },
                1, SeveralOf(Needed(RootsOf(lane_stores)), lanes.variables) / together);
        }
        CloseScope();
    });
}

// Code with a row's variables bound. What it computes is kept for the row, unless it is in a loop.
void Emitter::InRow(const Nest& rows, Row& row, bool keep, const std::function<void()>& code) {
    for (size_t i = 0; i < rows.loops.size(); ++i) {
        Bind(rows.loops[i].variable, rows.loops[i].extent, row.place[i]);
    }
    const VariableSet saved = bound_variables_;
    bound_variables_ |= rows.variables;
    kept_row_ = row.number;
    scopes_.push_back(std::move(row.known));
    if (keep) {
        code();
    } else {
        OpenScope();
        code();
        CloseScope();
    }
    row.known = std::move(scopes_.back());
    scopes_.pop_back();
    bound_variables_ = saved;
    for (const Loop& loop : rows.loops) {
        Unbind(loop.variable);
    }
}

// What is one value in a row: for all rows, one scalar after the other.
void Emitter::ReduceRows(const Nest& rows,
                         std::vector<Row>& each,
                         const std::vector<bool>& needed) {
    if (each.size() == 1) {
        InRow(rows, each[0], true, [&] {
            uniform_ = true;
            Hoist(needed);
            uniform_ = false;
        });
        return;
    }
    const VariableSet bound = bound_variables_ | rows.variables;
    uniform_ = true;
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
            InRow(rows, each[r], true, [&] { HoistScalar(id); });
        }
    }
    uniform_ = false;
}

Ids Emitter::ReduceTogether(const Nest& rows, std::vector<Row>& each, ScalarId id) {
    const auto& reduce = std::get<Reduce>(kernel_[id].value);
    const ElementType type = kernel_[id].type;
    const size_t ways = std::max<size_t>(WaysOf(reduce.loops) / each.size(), 1);
    const Ids initial(ways * each.size(), ConstantOf(type, NeutralElement(reduce.combine, type)));
    const Ids sums = Reduction(
        reduce.loops, {&reduce.body, 1}, initial, true,
        [&](std::span<const Id> carried) {
            Ids next;
            for (Row& row : each) {
                InRow(rows, row, false, [&] {
                    next.push_back(Combined(id, carried[next.size()], Value(reduce.body)));
                });
            }
            return next;
        },
        ways);
    Ids results;
    for (size_t r = 0; r < each.size(); ++r) {
        Id result = sums[r];
        for (size_t way = 1; way < ways; ++way) {
            result = Combined(id, result, sums[way * each.size() + r]);
        }
        result = AcrossInvocations(reduce.combine, type, result, !IsOfNumbers(id));
        results.push_back(IsFloat(type) ? result : Wrap(type, result));
    }
    return results;
}

void Emitter::EmitRowStores(std::span<const Store* const> stores,
                            std::span<const Loop> lane_loops) {
    Id once = Test(Op::OpIEqual, lane_, U(0));
    for (const Loop& loop : lane_loops) {
        once = b_.And(once, b_.ULess(U(0), EmitExtent(loop.extent)));
    }
    b_.If(once, [&] {
        OpenScope();
        EmitStores(stores);
        CloseScope();
    });
}

}  // namespace fornax::graph::loop

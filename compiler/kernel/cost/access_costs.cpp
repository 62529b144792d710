#include "compiler/kernel/cost/access_costs.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

namespace fornax::kernel {

using namespace ir;

namespace {

// Accesses closer than this are brought together: the burst of the DRAM that descriptions have.
constexpr int64_t kBurstBytes = 1 << 6;
// Lanes that are looked at one by one.
constexpr int64_t kMostLanes = 32;
// How far back accesses of the same buffer are looked for.
constexpr size_t kMostClusters = 32;
constexpr int64_t kMostDistance = 256;
constexpr uint32_t kAllGridAxes = 7;
// What a workgroup finds in its own memory may depend on it, or not on all of its axes.
constexpr uint32_t kUnknownAxes = 8;

}  // namespace

uint32_t AccessCosts::LaneAxis() const {
    const auto& size = kernel_.workgroup_size;
    return size[0] > 1 ? 0 : size[1] > 1 ? 1 : 2;
}

bool AccessCosts::DependsOnLane(const IndexSymbol& symbol) const {
    return (symbol.axes & kLaneAxis) != 0 &&
           (symbol.kind != IndexSymbol::Kind::kValue || varies_[symbol.number]);
}

std::optional<int64_t> AccessCosts::LaneDistance(ValueId offset, uint32_t axis, int64_t lane) {
    // The number of an invocation in its workgroup and subgroup follows the first dimension.
    const bool is_first = axis == LaneAxis();
    const auto at = [&](int64_t here) {
        return [this, axis, is_first, here](const IndexSymbol& symbol) -> IndexExpr {
            IndexAlgebra& algebra = index_.algebra();
            if (!DependsOnLane(symbol)) {
                return algebra.Symbol(symbol);
            }
            if (symbol.kind != IndexSymbol::Kind::kBuiltin) {
                return {};
            }
            switch (static_cast<BuiltinId>(symbol.number)) {
                case BuiltinId::kLocalIdX:
                    return algebra.Constant(axis == 0 ? here : 0);
                case BuiltinId::kLocalIdY:
                    return algebra.Constant(axis == 1 ? here : 0);
                case BuiltinId::kLocalIdZ:
                    return algebra.Constant(axis == 2 ? here : 0);
                case BuiltinId::kLocalIndex:
                case BuiltinId::kSubgroupLane:
                    return is_first ? algebra.Constant(here) : IndexExpr();
                case BuiltinId::kSubgroupId:
                    return is_first ? algebra.Constant(0) : IndexExpr();
                default:
                    return {};
            }
        };
    };
    const IndexExpr expr = index_.Between(offset, at(0), at(lane));
    if (!expr.valid()) {
        return std::nullopt;
    }
    const std::optional<int64_t> value = index_.algebra().AsConstant(expr);
    return value && kernel_.type(offset) == Type::kI32
               ? static_cast<int32_t>(static_cast<uint32_t>(*value))
               : value;
}

std::optional<int64_t> AccessCosts::LaneStride(ValueId offset, uint32_t axis) {
    const std::optional<int64_t> stride = LaneDistance(offset, axis, 1);
    // The last of the first few says whether it goes on like that.
    const int64_t last = std::min<int64_t>(kernel_.workgroup_size[axis], 16) - 1;
    if (!stride || last <= 1) {
        return stride;
    }
    return LaneDistance(offset, axis, last) == *stride * last ? stride : std::nullopt;
}

std::optional<uint64_t> AccessCosts::DenseBytes(const Cluster& cluster) {
    const auto lanes = std::min<int64_t>(kernel_.workgroup_size[LaneAxis()], kMostLanes);
    Cluster all{.first = cluster.first, .stride = {}, .ranges = {}};
    for (int64_t lane = 0; lane < lanes; ++lane) {
        const std::optional<int64_t> distance =
            LaneDistance(cluster.first.offset, LaneAxis(), lane);
        if (!distance) {
            return std::nullopt;
        }
        for (const Cluster::Range& range : cluster.ranges) {
            AddRange(all, {range.begin + *distance, range.end + *distance});
        }
    }
    int64_t bytes = 0;
    std::set<int64_t> bursts;
    for (const Cluster::Range& range : all.ranges) {
        bytes += range.end - range.begin;
        if (range.end - range.begin > kBurstBytes * kMostLanes * kMostLanes) {
            return std::nullopt;
        }
        // Rounded down, for negative offsets as well.
        for (int64_t burst = range.begin >> 6; burst <= (range.end - 1) >> 6; ++burst) {
            bursts.insert(burst);
        }
    }
    if (static_cast<int64_t>(bursts.size()) * kBurstBytes > std::max(2 * bytes, 2 * kBurstBytes)) {
        return std::nullopt;
    }
    return static_cast<uint64_t>((bytes + lanes - 1) / lanes);
}

void AccessCosts::AddRange(Cluster& cluster, Cluster::Range range) {
    std::vector<Cluster::Range> kept;
    for (const Cluster::Range& other : cluster.ranges) {
        if (other.end < range.begin || other.begin > range.end) {
            kept.push_back(other);
        } else {
            range = {std::min(range.begin, other.begin), std::max(range.end, other.end)};
        }
    }
    kept.push_back(range);
    cluster.ranges = std::move(kept);
}

void AccessCosts::Add(const FoundAccess& access) {
    const auto bytes = static_cast<int64_t>(access.bytes);
    const size_t begin = clusters_.size() > kMostClusters ? clusters_.size() - kMostClusters : 0;
    for (size_t i = begin; i < clusters_.size() && !access.is_atomic && !access.is_matrix; ++i) {
        Cluster& cluster = clusters_[i];
        const FoundAccess& first = cluster.first;
        if (first.times != access.times || first.buffer != access.buffer ||
            first.writes != access.writes || first.is_atomic || first.is_matrix ||
            first.loop != access.loop ||
            kernel_.type(first.offset) != kernel_.type(access.offset)) {
            continue;
        }
        const std::optional<int64_t> distance = index_.Distance(first.offset, access.offset);
        if (distance && std::abs(*distance) <= kMostDistance) {
            AddRange(cluster, {*distance, *distance + bytes});
            return;
        }
    }
    Cluster cluster{.first = access, .stride = LaneStride(access.offset), .ranges = {}};
    cluster.ranges.push_back({0, bytes});
    clusters_.push_back(std::move(cluster));
}

// What a workgroup finds in its own memory, or an atomic gives it, another one has otherwise.
bool AccessCosts::IsOfWorkgroup(const IndexSymbol& symbol) const {
    const Instruction* inst = symbol.kind == IndexSymbol::Kind::kValue
                                  ? kernel_.Definition(ValueId{symbol.number})
                                  : nullptr;
    return inst != nullptr && (inst->op == Op::kLoadShared || inst->op == Op::kAtomicShared ||
                               inst->op == Op::kAtomicBuffer || inst->op == Op::kAtomicGlobal);
}

AccessCosts::Dependence AccessCosts::DependenceOf(ValueId offset) {
    Dependence found;
    const IndexAlgebra& algebra = index_.algebra();
    // Terms share what they are made of.
    std::set<IndexTermId> seen;
    std::vector<IndexTermId> open;
    const auto add = [&](IndexTermId term) {
        if (seen.insert(term).second) {
            open.push_back(term);
        }
    };
    const auto add_parts = [&](IndexExpr expr) {
        std::ranges::for_each(algebra.sum(expr).parts, add, &IndexSum::Part::term);
    };
    add_parts(index_.Of(offset));
    while (!open.empty()) {
        const IndexTerm& term = algebra.term(open.back());
        open.pop_back();
        found.grid_axes |= static_cast<uint32_t>(term.axes & kWorkgroupAxes) >> 1;
        if (term.kind == IndexTerm::Kind::kProduct) {
            std::ranges::for_each(term.factors, add);
            continue;
        }
        if (term.kind != IndexTerm::Kind::kSymbol) {
            add_parts(term.operand);
            if (term.by.valid()) {
                add_parts(term.by);
            }
            continue;
        }
        if (IsOfWorkgroup(term.symbol)) {
            found.grid_axes |= kUnknownAxes;
        }
        if (!DependsOnLane(term.symbol)) {
            continue;
        }
        const bool is_builtin = term.symbol.kind == IndexSymbol::Kind::kBuiltin;
        const auto id = static_cast<BuiltinId>(term.symbol.number);
        const bool is_one =
            is_builtin && (id == BuiltinId::kLocalIdX || id == BuiltinId::kLocalIdY ||
                           id == BuiltinId::kLocalIdZ);
        for (uint32_t axis = 0; axis < 3; ++axis) {
            found.lanes[axis] |=
                !is_one || term.symbol.number == static_cast<uint32_t>(BuiltinId::kLocalIdX) + axis;
        }
    }
    return found;
}

int64_t AccessCosts::LoopStride(const FoundAccess& access) {
    if (!access.loop.valid()) {
        return 0;
    }
    const IndexExpr step = index_.AlongIteration(access.offset, access.loop);
    return step.valid() ? index_.algebra().AsConstant(step).value_or(0) : 0;
}

// From one iteration to the next each invocation goes on where it was.
bool AccessCosts::StreamsAlongLoop(const Cluster& cluster, uint64_t bytes) {
    const int64_t stride = LoopStride(cluster.first);
    return stride != 0 &&
           std::abs(stride) <= std::max<int64_t>(kBurstBytes, static_cast<int64_t>(bytes));
}

bool AccessCosts::LeapsAlongLoop(const FoundAccess& access, uint64_t lane_bytes) {
    if (!access.loop.valid() || access.loop_waits) {
        return false;
    }
    const IndexExpr step = index_.AlongIteration(access.offset, access.loop);
    if (!step.valid()) {
        return false;
    }
    const std::optional<int64_t> bytes = index_.algebra().AsConstant(step);
    const uint64_t run = std::max<uint64_t>(kBurstBytes, lane_bytes * kernel_.subgroup_size);
    return !bytes || static_cast<uint64_t>(std::abs(*bytes)) > run;
}

bool AccessCosts::IsDenseAcross(const FoundAccess& access, uint64_t bytes) {
    const auto& size = kernel_.workgroup_size;
    for (uint32_t axis = 0; axis < 3; ++axis) {
        if (axis == LaneAxis() || size[axis] * bytes < static_cast<uint64_t>(kBurstBytes)) {
            continue;
        }
        const std::optional<int64_t> stride = LaneStride(access.offset, axis);
        if (stride && *stride != 0 && static_cast<uint64_t>(std::abs(*stride)) <= bytes) {
            return true;
        }
    }
    return false;
}

CostAccess AccessCosts::CostOf(const Cluster& cluster) {
    const FoundAccess& first = cluster.first;
    uint64_t bytes = 0;
    for (const Cluster::Range& range : cluster.ranges) {
        bytes += static_cast<uint64_t>(range.end - range.begin);
    }
    CostAccess cost{
        .writes = first.writes, .bytes = bytes, .buffer = first.bound, .source = first.source};
    if (first.is_atomic) {
        cost.kind = npu::AccessKind::kAtomic;
        cost.element_bytes = static_cast<uint32_t>(bytes);
        return cost;
    }
    const Dependence depends = DependenceOf(first.offset);
    const auto& size = kernel_.workgroup_size;
    for (uint32_t axis = 0; axis < 3 && !first.is_matrix; ++axis) {
        cost.sharers *= depends.lanes[axis] ? 1 : size[axis];
    }
    const uint32_t invocations = size[0] * size[1] * size[2];
    const uint64_t stride =
        cluster.stride ? static_cast<uint64_t>(std::abs(*cluster.stride)) : UINT64_MAX;
    // Lanes overlap, touch each other, or leave gaps that a burst brings as well.
    const bool is_dense = stride != 0 && stride <= std::max<uint64_t>(bytes, kBurstBytes);
    const bool is_one = stride == 0 || first.is_matrix || cost.sharers == invocations;
    std::optional<uint64_t> dense;
    if (!is_one) {
        dense = is_dense ? stride : DenseBytes(cluster);
    }
    const auto step = static_cast<uint64_t>(std::abs(LoopStride(first)));
    if (dense) {
        // What one iteration leaves between two invocations others bring.
        cost.bytes = step != 0 ? std::min(*dense, std::max(step, bytes)) : *dense;
    } else if (!is_one && !StreamsAlongLoop(cluster, bytes) && !IsDenseAcross(first, bytes)) {
        cost.kind = first.writes ? npu::AccessKind::kScatter : npu::AccessKind::kGather;
        cost.element_bytes = static_cast<uint32_t>(bytes);
        cost.sharers = 1;
        return cost;
    }
    const auto& range = cluster.ranges.front();
    const auto touching = static_cast<uint64_t>(range.end - range.begin);
    cost.in_parts = first.writes && !is_one && (!dense || (cluster.stride && stride > touching));
    cost.apart = !is_one && dense && LeapsAlongLoop(first, *dense);
    cost.far = !is_one && !dense && !StreamsAlongLoop(cluster, bytes);
    cost.grid_axes = depends.grid_axes & kAllGridAxes;
    if (!first.writes && depends.grid_axes == 0) {
        cost.kind = npu::AccessKind::kBroadcast;
        cost.all_workgroups = true;
    } else if (cost.sharers > 1) {
        cost.kind = npu::AccessKind::kReuse;
    }
    return cost;
}

void AccessCosts::Finish(std::vector<CostRegion>& regions) {
    uint32_t order = 0;
    for (const Cluster& cluster : clusters_) {
        CostAccess cost = CostOf(cluster);
        cost.order = order++;
        regions[cluster.first.region].accesses.push_back(cost);
    }
}

}  // namespace fornax::kernel

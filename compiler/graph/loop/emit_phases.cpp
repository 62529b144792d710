// Kernels of phases (emit_phases.h).
#include "compiler/graph/loop/emit_phases.h"

#include <algorithm>

#include "compiler/graph/loop/limits.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

constexpr int64_t kMaxBlock = 4;

// The loops of a phase that make its blocks: the first so many.
size_t BlockLoops(const Phase& phase) {
    int64_t points = 1;
    size_t count = 0;
    while (count + 1 < phase.lanes.size()) {
        const std::optional<int64_t> extent = phase.lanes[count].extent.constant();
        if (!extent || *extent < 1 || points * *extent > kMaxBlock) {
            break;
        }
        points *= *extent;
        ++count;
    }
    return count;
}

bool HasNoLoops(const Kernel& kernel, const std::vector<bool>& scalars) {
    for (size_t i = 0; i < scalars.size(); ++i) {
        if (scalars[i] && !LoopsOf(kernel.scalars[i]).empty()) {
            return false;
        }
    }
    return true;
}

bool AreSame(std::span<const Loop> a, std::span<const Loop> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Loop& x, const Loop& y) { return x.variable == y.variable; });
}

class PhaseMapping : MappingPart {
  public:
    explicit PhaseMapping(KernelParts& parts) : MappingPart(parts) {}
    // The kernel has phases.
    void Emit();

  private:
    void RunPhases(When when);
    void Iterations(size_t sequential);
    void EmitPhase(const Phase& phase);
    void EmitBlock(const Phase& phase, std::span<const Loop> block);
    void ForBlock(std::span<const Loop> block, const std::function<void(size_t)>& body);
    std::vector<std::vector<ScalarId>> JointReductions(const std::vector<bool>& needed) const;
};

}  // namespace

void PhaseMapping::Emit() {
    uint32_t local_size = 1;
    for (const Phase& phase : kernel_.phases) {
        if (phase.when == When::kEach && !phase.lanes.empty()) {
            const std::span<const Loop> shared = std::span(phase.lanes).subspan(BlockLoops(phase));
            const Expr& last = shared.back().extent;
            const bool is_short = last.constant().value_or(kMaxLocalBytes) < 16;
            local_size = std::max(local_size, LocalSizeFor(is_short ? PointsOf(shared) : last));
        }
    }
    grid_.SetLocalSize(local_size);
    const Id group = grid_.WorkgroupIndex(PointsOf(kernel_.parallel));
    grid_.LoadLane();
    b_.If(grid_.inside(), [&] {
        const ValueScope scope(point_);
        index_.BindFromIndex(kernel_.parallel, group);
        point_.AddVariables(scope_.parallel);
        RunPhases(When::kBefore);
        Iterations(0);
        RunPhases(When::kAfter);
    });
}

void PhaseMapping::Iterations(size_t sequential) {
    if (sequential == kernel_.sequential.size()) {
        RunPhases(When::kEach);
        return;
    }
    const Loop& loop = kernel_.sequential[sequential];
    const BoundVariables bound(point_, scope_.VariablesOf(loop));
    loops_.ForLoop(loop, {}, [&](std::span<const Id>) {
        Iterations(sequential + 1);
        return Ids();
    });
}

void PhaseMapping::RunPhases(When when) {
    for (const Phase& phase : kernel_.phases) {
        if (phase.when == when) {
            EmitPhase(phase);
            if (when != When::kAfter) {
                b_.WorkgroupBarrier();
            }
        }
    }
}

void PhaseMapping::EmitPhase(const Phase& phase) {
    const size_t block = BlockLoops(phase);
    const std::span<const Loop> shared = std::span(phase.lanes).subspan(block);
    const Nest nest = {{shared.begin(), shared.end()}, scope_.VariablesOf(shared)};
    const BoundVariables bound(point_, nest.variables);
    const ValueScope scope(point_);
    loops_.ForLanes(nest, {}, [&](std::span<const Id>) {
        EmitBlock(phase, std::span(phase.lanes).first(block));
        return Ids();
    });
}

// Calls `body` for each point of the block, whose variables are constants then.
void PhaseMapping::ForBlock(std::span<const Loop> block, const std::function<void(size_t)>& body) {
    size_t points = 1;
    std::vector<Range> saved;
    for (const Loop& loop : block) {
        points *= static_cast<size_t>(*loop.extent.constant());
        saved.push_back(domain_.ranges.at(loop.variable));
    }
    const BoundVariables bound(point_, scope_.VariablesOf(block));
    for (size_t point = 0; point < points; ++point) {
        int64_t rest = static_cast<int64_t>(point);
        for (size_t i = block.size(); i-- > 0;) {
            const int64_t extent = *block[i].extent.constant();
            domain_.ranges[block[i].variable] = {rest % extent, rest % extent};
            rest /= extent;
        }
        body(point);
    }
    for (size_t i = 0; i < block.size(); ++i) {
        domain_.ranges[block[i].variable] = saved[i];
    }
}

// The reductions that are needed outside of others, by their loops. What has another reduction
// inside is left out.
std::vector<std::vector<ScalarId>> PhaseMapping::JointReductions(
    const std::vector<bool>& needed) const {
    std::vector<std::vector<ScalarId>> joint;
    const VariableSet outside = scope_.parallel | scope_.sequential | scope_.lanes;
    for (size_t i = 0; i < needed.size(); ++i) {
        const auto* reduce = std::get_if<Reduce>(&kernel_.scalars[i].value);
        if (!needed[i] || reduce == nullptr || (scope_.free[i] & ~outside) != 0 ||
            !HasNoLoops(kernel_, scalars_.Needed({&reduce->body, 1}))) {
            continue;
        }
        const auto same = std::find_if(joint.begin(), joint.end(), [&](const auto& others) {
            return AreSame(LoopsOf(kernel_[others[0]]), reduce->loops);
        });
        if (same == joint.end()) {
            joint.push_back({ScalarId(i)});
        } else {
            same->push_back(ScalarId(i));
        }
    }
    return joint;
}

void PhaseMapping::EmitBlock(const Phase& phase, std::span<const Loop> block) {
    const std::vector<const Store*> stores = StoresOf(phase);
    const std::vector<bool> needed = scalars_.Needed(RootsOf(stores));
    // By point, then by reduction.
    std::vector<std::map<uint32_t, Id>> results;
    ForBlock(block, [&](size_t) { results.emplace_back(); });
    for (const std::vector<ScalarId>& reductions : JointReductions(needed)) {
        const std::span<const Loop> loops = LoopsOf(kernel_[reductions[0]]);
        std::vector<ScalarId> bodies;
        Ids initial;
        for (const ScalarId id : reductions) {
            const auto& reduce = std::get<Reduce>(kernel_[id].value);
            bodies.push_back(reduce.body);
            initial.push_back(
                ConstantOf(kernel_[id].type, NeutralElement(reduce.combine, kernel_[id].type)));
        }
        Ids carried;
        for (size_t point = 0; point < results.size(); ++point) {
            carried.insert(carried.end(), initial.begin(), initial.end());
        }
        const std::vector<bool> inside = scalars_.Needed(bodies);
        const Ids sums = reductions_.Reduction(
            loops, bodies, carried, false, [&](std::span<const Id> values) -> Ids {
                scalars_.Hoist(inside);  // what the points have in common
                Ids next;
                ForBlock(block, [&](size_t) {
                    const ValueScope scope(point_);
                    for (const ScalarId id : reductions) {
                        const auto& reduce = std::get<Reduce>(kernel_[id].value);
                        next.push_back(reductions_.Combined(id, values[next.size()],
                                                            scalars_.Value(reduce.body)));
                    }
                });
                return next;
            });
        size_t next = 0;
        for (std::map<uint32_t, Id>& point : results) {
            for (const ScalarId id : reductions) {
                const ElementType type = kernel_[id].type;
                const Id sum = sums[next++];
                point[id.value()] = IsFloat(type) ? sum : Wrap(type, sum);
            }
        }
    }
    ForBlock(block, [&](size_t point) {
        const ValueScope scope(point_, results[point]);
        stores_.Emit(stores);
    });
}

bool EmitPhases(KernelParts& parts) {
    if (parts.code.kernel.phases.empty()) {
        return false;
    }
    PhaseMapping(parts).Emit();
    return true;
}

}  // namespace fornax::graph::loop

// Kernels of phases: a workgroup for each group, a barrier behind each phase.
//
// The invocations share the innermost loop of a phase. Of outer loops each takes a few points at
// once, a block, so that what these have in common is loaded once; and reductions over the same
// loops are one loop with an accumulator for each of them at each point of the block.
#include <algorithm>

#include "compiler/graph/loop/emitter.h"
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

}  // namespace

bool Emitter::EmitPhases() {
    if (kernel_.phases.empty()) {
        return false;
    }
    local_size_ = 1;
    for (const Phase& phase : kernel_.phases) {
        if (phase.when == When::kEach && !phase.lanes.empty()) {
            const std::span<const Loop> shared = std::span(phase.lanes).subspan(BlockLoops(phase));
            const Expr& last = shared.back().extent;
            const bool is_short = last.constant().value_or(kMaxLocalBytes) < 16;
            local_size_ = std::max(local_size_, LocalSizeFor(is_short ? PointsOf(shared) : last));
        }
    }
    group_ = {local_size_, 1, 1};
    const Id group = WorkgroupIndex(PointsOf(kernel_.parallel));
    lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
    b_.If(in_grid_ == 0 ? b_.True() : in_grid_, [&] {
        OpenScope();
        BindFromIndex(kernel_.parallel, group);
        bound_variables_ |= scope_.parallel;
        RunPhases(When::kBefore);
        Iterations(0);
        RunPhases(When::kAfter);
        CloseScope();
    });
    return true;
}

void Emitter::Iterations(size_t sequential) {
    if (sequential == kernel_.sequential.size()) {
        RunPhases(When::kEach);
        return;
    }
    const Loop& loop = kernel_.sequential[sequential];
    const VariableSet bit = VariableSet{1} << *scope_.Find(loop.variable);
    bound_variables_ |= bit;
    ForNest({{loop}, bit}, 0, {}, [&](std::span<const Id>) {
        Iterations(sequential + 1);
        return Ids();
    });
    bound_variables_ &= ~bit;
}

void Emitter::RunPhases(When when) {
    for (const Phase& phase : kernel_.phases) {
        if (phase.when == when) {
            EmitPhase(phase);
            if (when != When::kAfter) {
                b_.WorkgroupBarrier();
            }
        }
    }
}

void Emitter::EmitPhase(const Phase& phase) {
    const VariableSet saved = bound_variables_;
    const size_t block = BlockLoops(phase);
    Nest nest;
    for (size_t i = block; i < phase.lanes.size(); ++i) {
        nest.loops.push_back(phase.lanes[i]);
        nest.variables |= VariableSet{1} << *scope_.Find(phase.lanes[i].variable);
    }
    bound_variables_ |= nest.variables;
    OpenScope();
    ForLanes(nest, {}, [&](std::span<const Id>) {
        EmitBlock(phase, std::span(phase.lanes).first(block));
        return Ids();
    });
    CloseScope();
    bound_variables_ = saved;
}

// Calls `body` for each point of the block, whose variables are constants then.
void Emitter::ForBlock(std::span<const Loop> block, const std::function<void(size_t)>& body) {
    size_t points = 1;
    VariableSet variables = 0;
    std::vector<Range> saved;
    for (const Loop& loop : block) {
        points *= static_cast<size_t>(*loop.extent.constant());
        variables |= VariableSet{1} << *scope_.Find(loop.variable);
        saved.push_back(domain_.ranges.at(loop.variable));
    }
    bound_variables_ |= variables;
    for (size_t point = 0; point < points; ++point) {
        int64_t rest = static_cast<int64_t>(point);
        for (size_t i = block.size(); i-- > 0;) {
            const int64_t extent = *block[i].extent.constant();
            domain_.ranges[block[i].variable] = {rest % extent, rest % extent};
            rest /= extent;
        }
        body(point);
    }
    bound_variables_ &= ~variables;
    for (size_t i = 0; i < block.size(); ++i) {
        domain_.ranges[block[i].variable] = saved[i];
    }
}

// The reductions that are needed outside of others, by their loops. What has another reduction
// inside is left out.
std::vector<std::vector<ScalarId>> Emitter::JointReductions(const std::vector<bool>& needed) const {
    std::vector<std::vector<ScalarId>> joint;
    const VariableSet outside = scope_.parallel | scope_.sequential | scope_.lanes;
    for (size_t i = 0; i < needed.size(); ++i) {
        const auto* reduce = std::get_if<Reduce>(&kernel_.scalars[i].value);
        if (!needed[i] || reduce == nullptr || (scope_.free[i] & ~outside) != 0 ||
            !HasNoLoops(kernel_, Needed({&reduce->body, 1}))) {
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

void Emitter::EmitBlock(const Phase& phase, std::span<const Loop> block) {
    std::vector<const Store*> stores;
    for (const Store& store : phase.stores) {
        stores.push_back(&store);
    }
    const std::vector<bool> needed = Needed(RootsOf(stores));
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
        const std::vector<bool> inside = Needed(bodies);
        const Ids sums =
            Reduction(loops, bodies, carried, false, [&](std::span<const Id> values) -> Ids {
                Hoist(inside);  // what the points have in common
                Ids next;
                ForBlock(block, [&](size_t) {
                    OpenScope();
                    for (const ScalarId id : reductions) {
                        const auto& reduce = std::get<Reduce>(kernel_[id].value);
                        next.push_back(Combined(id, values[next.size()], Value(reduce.body)));
                    }
                    CloseScope();
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
        scopes_.push_back(results[point]);
        EmitStores(stores);
        CloseScope();
    });
}

}  // namespace fornax::graph::loop

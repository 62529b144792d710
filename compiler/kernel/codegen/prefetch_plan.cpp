#include "compiler/kernel/codegen/prefetch_plan.h"
#include "compiler/kernel/analysis/access_limits.h"

#include <algorithm>

namespace fornax::kernel {

using ir::Op;
using Storage = BarrierRegions::Storage;

namespace {

constexpr uint32_t kMaxDepth = 24;
constexpr size_t kMaxComputed = 256;
constexpr size_t kMaxLoads = 64;
constexpr uint64_t kLoopWeight = 8;
constexpr uint64_t kMatrixWeight = 64;
// The region is this many times as long as what is added to it.
constexpr uint64_t kWorthFetching = 6;

}  // namespace

PrefetchPlan::PrefetchPlan(const ir::Kernel& kernel,
                           const LaneAnalysis& patterns,
                           const BarrierRegions& regions,
                           const std::vector<bool>& workgroup_level)
    : kernel_(kernel), patterns_(patterns), regions_(regions), index_(kernel, kHints) {
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        const ir::Instruction& inst = kernel.inst(ir::InstId{i});
        if (inst.op == Op::kLoop && workgroup_level[i]) {
            VisitLoop(inst);
        }
    }
}

void PrefetchPlan::VisitLoop(const ir::Instruction& loop) {
    const Steps steps = FindSteps(loop);
    if (steps.empty()) {
        return;
    }
    FindDependents(steps);
    std::vector<uint32_t> regions;
    for (ir::BlockId block : loop.blocks) {
        for (const Step& step : regions_.steps(block)) {
            if (step.kind == Step::Kind::kRegion) {
                regions.push_back(step.region);
            }
        }
    }
    std::vector<uint64_t> weights;
    for (uint32_t region : regions) {
        uint64_t& weight = weights.emplace_back(0);
        for (const RegionItem& item : regions_.region(region).items) {
            weight += Weight(item.inst);
        }
    }
    for (size_t i = 0; i < regions.size(); ++i) {
        Iteration iteration;
        iteration.steps = steps;
        AddLoads(regions_.region(regions[i]), iteration);
        if (iteration.loads.empty()) {
            continue;
        }
        const uint64_t needed =
            kWorthFetching * (iteration.computed.size() + iteration.loads.size());
        // In regions before it, not all that its offsets are made of is there.
        size_t by = i + 1;
        while (by < regions.size() && (weights[by] < needed || iterations_.contains(regions[by]))) {
            ++by;
        }
        if (by == regions.size()) {
            by = i;
        }
        if (weights[by] >= needed && !iterations_.contains(regions[by])) {
            iterations_[regions[by]] = std::move(iteration);
        }
    }
}

uint64_t PrefetchPlan::Weight(ir::InstId id) const {
    const ir::Instruction& inst = kernel_.inst(id);
    uint64_t inside = 0;
    for (ir::BlockId block : inst.blocks) {
        for (ir::InstId child : kernel_.block(block).insts) {
            inside += Weight(child);
        }
    }
    if (inst.op == Op::kMatrixMulAdd) {
        return kMatrixWeight;
    }
    return 1 + inside * (inst.op == Op::kLoop ? kLoopWeight : 1);
}

// The parameters of the loop's body that grow by a constant.
PrefetchPlan::Steps PrefetchPlan::FindSteps(const ir::Instruction& loop) {
    Steps steps;
    for (ir::ValueId param : kernel_.block(loop.blocks[0]).params) {
        const std::optional<int64_t> step = index_.StepOf(param);
        if (step && *step != 0 && patterns_.pattern(param).uniform()) {
            steps.emplace_back(param, *step);
        }
    }
    return steps;
}

void PrefetchPlan::AddLoads(const BarrierRegion& from, Iteration& iteration) {
    for (const RegionItem& item : from.items) {
        const ir::Instruction& inst = kernel_.inst(item.inst);
        if (item.kind != RegionItem::Kind::kInstruction || inst.op != Op::kLoadBuffer ||
            (inst.flags & ir::kVolatile) != 0 || iteration.loads.size() >= kMaxLoads ||
            patterns_.pattern(inst.operands[1]).varying() || !depends_[inst.operands[1].value()] ||
            HasItsLine(item.inst, iteration)) {
            continue;
        }
        const size_t before = iteration.computed.size();
        if (Compute(inst.operands[0], iteration, 0) && Compute(inst.operands[1], iteration, 0)) {
            iteration.loads.push_back(item.inst);
        } else {
            iteration.computed.resize(before);
        }
    }
}

// Another load's rows probably lie in the same lines, before this one's.
bool PrefetchPlan::HasItsLine(ir::InstId load, const Iteration& iteration) {
    const ir::Instruction& inst = kernel_.inst(load);
    const LanePattern& pattern = patterns_.pattern(inst.operands[1]);
    const auto bytes = static_cast<int64_t>(
        inst.results.size() * std::max(1u, ir::ByteSize(kernel_.type(inst.results[0]))));
    const int64_t row_bytes =
        bytes + (pattern.offsets.empty() ? 0
                                         : *std::ranges::max_element(pattern.offsets) -
                                               *std::ranges::min_element(pattern.offsets));
    return std::ranges::any_of(iteration.loads, [&](ir::InstId id) {
        const ir::Instruction& other = kernel_.inst(id);
        if (other.operands[0] != inst.operands[0] ||
            !patterns_.pattern(other.operands[1]).SameLanes(pattern)) {
            return false;
        }
        const auto distance = index_.Distance(other.operands[1], inst.operands[1]);
        return distance && *distance >= 0 &&
               *distance + row_bytes <= static_cast<int64_t>(kCacheLineBytes);
    });
}

// Instructions are numbered in the order of the text.
void PrefetchPlan::FindDependents(const Steps& steps) {
    depends_.assign(kernel_.num_values(), false);
    for (const auto& [counter, step] : steps) {
        depends_[counter.value()] = true;
    }
    for (uint32_t i = 0; i < kernel_.num_insts(); ++i) {
        const ir::Instruction& inst = kernel_.inst(ir::InstId{i});
        if (!ir::HasProperty(inst.op, ir::kPure) ||
            std::none_of(inst.operands.begin(), inst.operands.end(),
                         [&](ir::ValueId operand) { return depends_[operand.value()]; })) {
            continue;
        }
        for (ir::ValueId result : inst.results) {
            depends_[result.value()] = true;
        }
    }
}

bool PrefetchPlan::Compute(ir::ValueId value, Iteration& iteration, uint32_t depth) const {
    auto is_counter = [&](const auto& step) { return step.first == value; };
    if (std::any_of(iteration.steps.begin(), iteration.steps.end(), is_counter)) {
        return true;
    }
    if (std::find(iteration.computed.begin(), iteration.computed.end(), value) !=
        iteration.computed.end()) {
        return true;
    }
    if (patterns_.pattern(value).has_rows() &&
        !Compute(patterns_.pattern(value).stride, iteration, depth + 1)) {
        return false;
    }
    if (regions_.storage(value) == Storage::kWorkgroup && !depends_[value.value()]) {
        return true;
    }
    const ir::Instruction* inst = kernel_.Definition(value);
    if (!inst || depth > kMaxDepth || iteration.computed.size() >= kMaxComputed ||
        inst->results.size() != 1 || !ir::HasProperty(inst->op, ir::kPure)) {
        return false;
    }
    for (ir::ValueId operand : inst->operands) {
        if (!Compute(operand, iteration, depth + 1)) {
            return false;
        }
    }
    iteration.computed.push_back(value);
    return true;
}

}  // namespace fornax::kernel

#include "compiler/kernel/codegen/prefetch_plan.h"
#include "compiler/kernel/analysis/access_limits.h"

#include <algorithm>

namespace fornax::kernel {

using ir::Op;
using Storage = Regions::Storage;

namespace {

constexpr uint32_t kMaxDepth = 24;
constexpr size_t kMaxComputed = 256;
constexpr size_t kMaxLoads = 64;
constexpr uint64_t kLoopWeight = 8;
constexpr uint64_t kMatrixWeight = 64;
// The segment is this many times as long as what is added to it.
constexpr uint64_t kWorthFetching = 6;

}  // namespace

PrefetchPlan::PrefetchPlan(const ir::Kernel& kernel,
                           const ShapeAnalysis& shapes,
                           const Regions& regions,
                           const std::vector<bool>& workgroup_level)
    : kernel_(kernel), shapes_(shapes), regions_(regions), index_(kernel, kHints) {
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
    std::vector<uint32_t> segments;
    for (ir::BlockId block : loop.blocks) {
        for (const Step& step : regions_.steps(block)) {
            if (step.kind == Step::Kind::kSegment) {
                segments.push_back(step.segment);
            }
        }
    }
    std::vector<uint64_t> weights;
    for (uint32_t segment : segments) {
        uint64_t& weight = weights.emplace_back(0);
        for (const SegmentItem& item : regions_.segment(segment).items) {
            weight += Weight(item.inst);
        }
    }
    for (size_t i = 0; i < segments.size(); ++i) {
        Round round;
        round.steps = steps;
        AddLoads(regions_.segment(segments[i]), round);
        if (round.loads.empty()) {
            continue;
        }
        const uint64_t needed = kWorthFetching * (round.computed.size() + round.loads.size());
        // In segments before it, not all that its offsets are made of is there.
        size_t by = i + 1;
        while (by < segments.size() && (weights[by] < needed || rounds_.contains(segments[by]))) {
            ++by;
        }
        if (by == segments.size()) {
            by = i;
        }
        if (weights[by] >= needed && !rounds_.contains(segments[by])) {
            rounds_[segments[by]] = std::move(round);
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
        if (step && *step != 0 && shapes_.shape(param).uniform()) {
            steps.emplace_back(param, *step);
        }
    }
    return steps;
}

void PrefetchPlan::AddLoads(const Segment& from, Round& round) {
    for (const SegmentItem& item : from.items) {
        const ir::Instruction& inst = kernel_.inst(item.inst);
        if (item.kind != SegmentItem::Kind::kInstruction || inst.op != Op::kLoadBuffer ||
            (inst.flags & ir::kVolatile) != 0 || round.loads.size() >= kMaxLoads ||
            shapes_.shape(inst.operands[1]).varying() || !depends_[inst.operands[1].index] ||
            HasItsLine(item.inst, round)) {
            continue;
        }
        const size_t before = round.computed.size();
        if (Compute(inst.operands[0], round, 0) && Compute(inst.operands[1], round, 0)) {
            round.loads.push_back(item.inst);
        } else {
            round.computed.resize(before);
        }
    }
}

// Another load's rows probably lie in the same lines, before this one's.
bool PrefetchPlan::HasItsLine(ir::InstId load, const Round& round) {
    const ir::Instruction& inst = kernel_.inst(load);
    const Shape& shape = shapes_.shape(inst.operands[1]);
    const auto bytes = static_cast<int64_t>(
        inst.results.size() * std::max(1u, ir::ByteSize(kernel_.type(inst.results[0]))));
    const int64_t row_bytes =
        bytes + (shape.offsets.empty() ? 0
                                       : *std::ranges::max_element(shape.offsets) -
                                             *std::ranges::min_element(shape.offsets));
    return std::ranges::any_of(round.loads, [&](ir::InstId id) {
        const ir::Instruction& other = kernel_.inst(id);
        if (other.operands[0] != inst.operands[0] ||
            !shapes_.shape(other.operands[1]).SameLanes(shape)) {
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
        depends_[counter.index] = true;
    }
    for (uint32_t i = 0; i < kernel_.num_insts(); ++i) {
        const ir::Instruction& inst = kernel_.inst(ir::InstId{i});
        if (!ir::HasProperty(inst.op, ir::kPure) ||
            std::none_of(inst.operands.begin(), inst.operands.end(),
                         [&](ir::ValueId operand) { return depends_[operand.index]; })) {
            continue;
        }
        for (ir::ValueId result : inst.results) {
            depends_[result.index] = true;
        }
    }
}

bool PrefetchPlan::Compute(ir::ValueId value, Round& round, uint32_t depth) const {
    auto is_counter = [&](const auto& step) { return step.first == value; };
    if (std::any_of(round.steps.begin(), round.steps.end(), is_counter)) {
        return true;
    }
    if (std::find(round.computed.begin(), round.computed.end(), value) != round.computed.end()) {
        return true;
    }
    if (shapes_.shape(value).has_rows() &&
        !Compute(shapes_.shape(value).stride, round, depth + 1)) {
        return false;
    }
    if (regions_.storage(value) == Storage::kWorkgroup && !depends_[value.index]) {
        return true;
    }
    const ir::Instruction* inst = kernel_.Definition(value);
    if (!inst || depth > kMaxDepth || round.computed.size() >= kMaxComputed ||
        inst->results.size() != 1 || !ir::HasProperty(inst->op, ir::kPure)) {
        return false;
    }
    for (ir::ValueId operand : inst->operands) {
        if (!Compute(operand, round, depth + 1)) {
            return false;
        }
    }
    round.computed.push_back(value);
    return true;
}

}  // namespace fornax::kernel

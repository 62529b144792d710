#include "compiler/kernel/codegen/segment_layouts.h"

#include <algorithm>

#include "compiler/kernel/access/lane_layout.h"
#include "compiler/kernel/codegen/lane_map.h"

namespace fornax::kernel {

using ir::Op;
using Storage = Regions::Storage;

namespace {

// A segment cheaper than this an invocation, in vector operations, has no access lane by lane.
constexpr double kCheapSegment = 1;
// Rows turned into columns cost shuffles that the estimate does not count.
constexpr double kWorthAnotherWidth = 0.6;
constexpr size_t kMaxRecomputed = 24;
constexpr uint32_t kRecomputeDepth = 12;
// Every width that is tried costs an analysis of the kernel.
constexpr uint32_t kMaxInstructions = 4000;

}  // namespace

SegmentLayouts::SegmentLayouts(const ir::Kernel& kernel,
                               const EmitOptions& options,
                               const ShapeAnalysis& shapes,
                               const Regions& regions,
                               const std::vector<bool>& workgroup_level)
    : kernel_(kernel),
      options_(options),
      shapes_(shapes),
      regions_(regions),
      workgroup_level_(workgroup_level) {
    if (regions.num_segments() < 2 || regions.keeps_mask() || shapes.map().workgroups != 1 ||
        shapes.map().tile_width != 0 || kernel.num_insts() > kMaxInstructions ||
        SeesSubgroups(kernel)) {
        return;
    }
    for (uint32_t i = 0; i < regions.num_segments(); ++i) {
        if (MayDiffer(regions.segment(i))) {
            Choose(i);
        }
    }
}

bool SegmentLayouts::MayDiffer(const Segment& segment) const {
    return std::all_of(segment.items.begin(), segment.items.end(), [&](const SegmentItem& item) {
        switch (item.kind) {
            case SegmentItem::Kind::kInstruction:
                return TreeMayDiffer(item.inst);
            case SegmentItem::Kind::kCondition:
                return true;
            case SegmentItem::Kind::kTransfer:
                break;
        }
        return false;
    });
}

// Nothing that is kept a vector: values across segments, private memory.
bool SegmentLayouts::TreeMayDiffer(ir::InstId id) const {
    const ir::Instruction& inst = kernel_.inst(id);
    if (inst.op == Op::kLoadLocal || inst.op == Op::kStoreLocal || inst.op == Op::kReturn) {
        return false;
    }
    for (ir::ValueId result : inst.results) {
        if (regions_.storage(result) == Storage::kSubgroupSlot) {
            return false;
        }
    }
    return std::all_of(inst.blocks.begin(), inst.blocks.end(), [&](ir::BlockId block) {
        const std::vector<ir::InstId>& insts = kernel_.block(block).insts;
        return std::all_of(insts.begin(), insts.end(),
                           [&](ir::InstId child) { return TreeMayDiffer(child); });
    });
}

std::shared_ptr<const ShapeAnalysis> SegmentLayouts::Analyse(uint32_t lanes) {
    std::shared_ptr<const ShapeAnalysis>& analysis = analyses_[lanes];
    if (!analysis) {
        analysis = std::make_shared<ShapeAnalysis>(kernel_, lanes, workgroup_level_);
    }
    return analysis;
}

void SegmentLayouts::Choose(uint32_t index) {
    const Segment& segment = regions_.segment(index);
    const uint32_t vector_bytes = options_.vector_bits / 8;
    const double own_cost = EstimateMemoryCost(kernel_, shapes_, vector_bytes, segment);
    if (own_cost < kCheapSegment) {
        return;
    }
    double best_cost = own_cost * kWorthAnotherWidth;
    const auto& size = kernel_.workgroup_size;
    const uint32_t invocations = size[0] * size[1] * size[2];
    for (uint32_t lanes = shapes_.lanes() * 2; lanes <= kMaxLanes; lanes *= 2) {
        if (invocations % lanes != 0) {
            break;
        }
        Layout layout;
        layout.shapes = Analyse(lanes);
        const double cost = EstimateMemoryCost(kernel_, *layout.shapes, vector_bytes, segment);
        if (cost < best_cost && Recompute(index, layout)) {
            best_cost = cost;
            layouts_[index] = std::move(layout);
        }
    }
}

bool SegmentLayouts::Recompute(uint32_t segment, Layout& layout) const {
    const std::vector<SegmentItem>& items = regions_.segment(segment).items;
    return std::all_of(items.begin(), items.end(), [&](const SegmentItem& item) {
        if (item.kind == SegmentItem::Kind::kInstruction) {
            return RecomputeTree(item.inst, segment, layout);
        }
        const std::vector<ir::ValueId>& operands = kernel_.inst(item.inst).operands;
        return std::all_of(operands.begin(), operands.end(), [&](ir::ValueId operand) {
            return RecomputeValue(operand, segment, layout, 0);
        });
    });
}

bool SegmentLayouts::RecomputeTree(ir::InstId id, uint32_t segment, Layout& layout) const {
    const ir::Instruction& inst = kernel_.inst(id);
    for (ir::ValueId operand : inst.operands) {
        if (!RecomputeValue(operand, segment, layout, 0)) {
            return false;
        }
    }
    for (ir::ValueId result : inst.results) {
        // Both maps have to hold what other segments take from here in the same form.
        if (regions_.storage(result) == Storage::kWorkgroupSlot &&
            (!shapes_.shape(result).uniform() || !layout.shapes->shape(result).uniform())) {
            return false;
        }
    }
    for (ir::BlockId block : inst.blocks) {
        for (ir::InstId child : kernel_.block(block).insts) {
            if (!RecomputeTree(child, segment, layout)) {
                return false;
            }
        }
    }
    return true;
}

bool SegmentLayouts::RecomputeValue(ir::ValueId value,
                                    uint32_t segment,
                                    Layout& layout,
                                    uint32_t depth) const {
    if (regions_.segment_of(value) == segment) {
        return true;
    }
    const Shape& shape = layout.shapes->shape(value);
    if (shape.has_rows() && !RecomputeValue(shape.stride, segment, layout, depth + 1)) {
        return false;
    }
    const Storage storage = regions_.storage(value);
    const bool one = storage == Storage::kWorkgroup || storage == Storage::kWorkgroupSlot;
    if (one && shapes_.shape(value).uniform()) {
        return shape.uniform();
    }
    if (std::find(layout.recomputed.begin(), layout.recomputed.end(), value) !=
        layout.recomputed.end()) {
        return true;
    }
    const ir::Instruction* inst = kernel_.Definition(value);
    if (!inst || depth > kRecomputeDepth || layout.recomputed.size() >= kMaxRecomputed ||
        inst->results.size() != 1 || !ir::HasProperty(inst->op, ir::kPure)) {
        return false;
    }
    for (ir::ValueId operand : inst->operands) {
        if (!RecomputeValue(operand, segment, layout, depth + 1)) {
            return false;
        }
    }
    layout.recomputed.push_back(value);
    return true;
}

}  // namespace fornax::kernel

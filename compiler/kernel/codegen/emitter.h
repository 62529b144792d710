// The function around a kernel and its barrier regions: the loop over workgroups, control flow of
// the whole workgroup, a loop over vectors for each region. What is inside of a region is emitted
// by the concerns that function_code.h lists.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/kernel/analysis/regions.h"
#include "compiler/kernel/codegen/emit_control.h"
#include "compiler/kernel/codegen/prefetch_plan.h"
#include "compiler/kernel/codegen/segment_layouts.h"

namespace fornax::kernel {

class Emitter {
  public:
    // `prefetches`: null if nothing is fetched ahead. `fetches_loads`: see AccessEmitter.
    Emitter(const ir::Kernel& kernel,
            const ShapeAnalysis& shapes,
            const Regions& regions,
            const SegmentLayouts& layouts,
            const PrefetchPlan* prefetches,
            bool fetches_loads,
            ExplainRecorder& recorder,
            const EmitOptions& options,
            llvm::Module& module);

    // Emits the whole function; returns the scratch bytes that it needs.
    Result<uint32_t> Run(const std::string& symbol);

  private:
    // --- emit.cpp ---
    void EmitPrologue(const std::string& symbol);
    void EmitWorkgroupLoop();

    // --- emit_regions.cpp ---
    void EmitWorkgroupBlock(ir::BlockId block);
    void EmitWorkgroupConstruct(ir::InstId id);
    void EmitWorkgroupTerminator(ir::InstId id);
    void EmitSegment(uint32_t index);
    void EmitSegmentLoop(uint32_t index, const SegmentLayouts::Layout* layout);
    void EmitItems(std::span<const SegmentItem> items);
    bool EmitRestIfAllStay(std::span<const SegmentItem> items);
    void EmitItemsUnmasked(std::span<const SegmentItem> items, llvm::Value* all);
    bool WorthCopying(std::span<const SegmentItem> items) const;
    void EmitSegmentItem(const SegmentItem& item);
    void EmitTransfer(ir::InstId id);
    void TransferTargets(ir::InstId id, std::span<const ir::ValueId>& into);
    Construct& PushWorkgroupConstruct(ir::InstId id);

    // --- emit_prefetch.cpp ---
    void EmitPrefetches(uint32_t segment);

    const ir::Kernel& kernel_;
    const Regions& regions_;
    const SegmentLayouts& layouts_;
    const PrefetchPlan* prefetches_;
    FunctionCode code_;
    llvm::IRBuilder<>& builder_ = code_.builder;
    CurrentShapes& shapes_ = code_.shapes;
    ExplainRecorder& recorder_ = code_.recorder;
    MemoryCode memory_;
    ValueCode values_;
    MemoryRegions memory_regions_;
    PrefetchCode prefetch_;
    AccessEmitter accesses_;
    AtomicEmitter atomics_;
    SubgroupEmitter subgroups_;
    SpillSlots spills_;
    ControlEmitter control_;
    llvm::BasicBlock* workgroup_end_ = nullptr;  // goes to the next workgroup
    std::vector<llvm::AllocaInst*> conditions_;  // by instruction: workgroup-level branches
};

}  // namespace fornax::kernel

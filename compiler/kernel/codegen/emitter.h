// The function around a kernel and its barrier regions: the loop over workgroups, control flow of
// the whole workgroup, a loop over vectors for each region. What is inside of a region is emitted
// by the concerns that function_code.h lists.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/kernel/analysis/barrier_regions.h"
#include "compiler/kernel/codegen/emit_control.h"
#include "compiler/kernel/codegen/prefetch_plan.h"
#include "compiler/kernel/codegen/region_lane_maps.h"

namespace fornax::kernel {

class Emitter {
  public:
    // `prefetches`: null if nothing is prefetched. `fetches_loads`: see AccessEmitter.
    Emitter(const ir::Kernel& kernel,
            const LaneAnalysis& patterns,
            const BarrierRegions& regions,
            const RegionLaneMaps& layouts,
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
    void EmitRegion(uint32_t index);
    void EmitRegionLoop(uint32_t index, const RegionLaneMaps::Layout* layout);
    void EmitItems(std::span<const RegionItem> items);
    bool EmitRestIfAllStay(std::span<const RegionItem> items);
    void EmitItemsUnmasked(std::span<const RegionItem> items, llvm::Value* all);
    bool WorthCopying(std::span<const RegionItem> items) const;
    void EmitRegionItem(const RegionItem& item);
    void EmitTransfer(ir::InstId id);
    void TransferTargets(ir::InstId id, std::span<const ir::ValueId>& into);
    Construct& PushWorkgroupConstruct(ir::InstId id);

    // --- emit_prefetch.cpp ---
    void EmitPrefetches(uint32_t region);

    const ir::Kernel& kernel_;
    const BarrierRegions& regions_;
    const RegionLaneMaps& layouts_;
    const PrefetchPlan* prefetches_;
    FunctionCode code_;
    llvm::IRBuilder<>& builder_ = code_.builder;
    CurrentLaneAnalysis& patterns_ = code_.patterns;
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

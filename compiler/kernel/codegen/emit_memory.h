// Loads and stores. An access is planned first (access/access_plan.h): one to one address is a
// scalar's, one by runs of memory is carried out in emit_plan.cpp; anything else is tried as a
// speculation (emit_speculated.cpp) or becomes a gather or scatter.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include <optional>
#include <span>
#include <vector>

#include "compiler/kernel/access/access_plan.h"
#include "compiler/kernel/codegen/assumption_check.h"
#include "compiler/kernel/codegen/emit_fetch.h"
#include "compiler/kernel/codegen/emit_packed.h"
#include "compiler/kernel/codegen/emit_values.h"
#include "compiler/kernel/codegen/memory_code.h"
#include "compiler/kernel/codegen/memory_regions.h"

namespace fornax::kernel {

class AccessEmitter : FunctionPart {
  public:
    using Values = vectors::Values;

    // `fetches_loads`: the kernel computes so much that loads are worth a request ahead.
    AccessEmitter(FunctionCode& code,
                  MemoryCode& memory,
                  ValueCode& values,
                  MemoryRegions& memory_regions,
                  PrefetchCode& prefetch,
                  const BarrierRegions& regions,
                  bool fetches_loads)
        : FunctionPart(code),
          memory_(memory),
          values_(values),
          memory_regions_(memory_regions),
          prefetch_(prefetch),
          packed_(code, values),
          regions_(regions),
          fetches_loads_(fetches_loads) {}

    // Pure operations, loads of what does not change among them.
    void EmitPure(const ir::Instruction& inst);
    void EmitMemory(const ir::Instruction& inst);
    void EmitLocal(const ir::Instruction& inst);
    void EmitLoad(const ir::Instruction& inst, const MemoryRegion& region, ir::ValueId offset);
    void EmitStore(const MemoryRegion& region,
                   ir::ValueId offset,
                   std::span<const ir::ValueId> values);

  private:
    void EmitGivenLoad(const ir::Instruction& inst, const MemoryRegion& region, bool once_per_call);
    // A lane each, made where it is needed.
    using LaneOffsets = llvm::function_ref<llvm::Value*()>;

    bool HasRowsOnly(uint32_t local);

    // --- emit_plan.cpp ---
    AccessPlan PlanOf(const MemoryRegion& region,
                      const LanePattern& offset,
                      llvm::Type* type,
                      size_t count,
                      bool is_store,
                      bool is_masked);
    // A plan that is neither by lane nor of one address, and what it is executed with.
    struct PlannedAccess {
        const MemoryRegion& region;
        const Offset& offset;
        const AccessPlan& plan;
        LaneOffsets offsets;
    };
    Values LoadPlanned(const PlannedAccess& access,
                       llvm::Type* type,
                       size_t count,
                       llvm::Value*& packed);
    void StorePlanned(const PlannedAccess& access,
                      llvm::ArrayRef<llvm::Value*> values,
                      llvm::Value* packed);
    llvm::Value* RowsInBounds(const PlannedAccess& access, llvm::Value* first);
    Values FirstOffsets(const PlannedAccess& access);
    llvm::Value* PlanHolds(const PlannedAccess& access, llvm::Value* first);
    llvm::Value* PlannedAddress(const PlannedAccess& access, llvm::Value* first);
    llvm::SmallVector<int, 128> LanesOf(const AccessPlan& plan, const AccessPlan::Move& move) const;
    llvm::Value* LoadMove(const PlannedAccess& access,
                          const AccessPlan::Move& move,
                          llvm::Value* address,
                          llvm::Type* type);
    bool LoadOverlapping(const PlannedAccess& access,
                         llvm::ArrayRef<llvm::Value*> firsts,
                         llvm::Type* unit,
                         Values& units);
    Values LoadUnits(const PlannedAccess& access,
                     llvm::ArrayRef<llvm::Value*> firsts,
                     llvm::Type* type,
                     size_t count,
                     llvm::Value*& packed);
    Values UnitsOf(Values elements, const AccessPlan& plan);
    unsigned PrefixLanes(llvm::ArrayRef<int> lane_of) const;
    void StoreUnits(const PlannedAccess& access,
                    llvm::ArrayRef<llvm::Value*> firsts,
                    llvm::ArrayRef<llvm::Value*> units,
                    llvm::Value* packed);

    // --- emit_speculated.cpp ---
    bool LoadSpeculated(const MemoryRegion& region,
                        ir::ValueId offset,
                        llvm::Type* type,
                        size_t count,
                        Values& results,
                        llvm::Value*& packed);
    bool StoreSpeculated(const MemoryRegion& region,
                         ir::ValueId offset,
                         llvm::ArrayRef<llvm::Value*> values);
    std::optional<SpeculatedPattern> SpeculatePattern(ir::ValueId offset);
    llvm::Value* PatternHolds(const MemoryRegion& region,
                              SpeculatedPattern& speculated,
                              ir::ValueId offset,
                              uint64_t bytes,
                              bool is_store);
    void PlanPrefetches(const ir::Instruction& inst, MemoryRegion& region);
    bool IsStreamed(const SpeculatedPattern& speculated, ir::ValueId offset, uint64_t bytes);

    MemoryCode& memory_;
    ValueCode& values_;
    MemoryRegions& memory_regions_;
    PrefetchCode& prefetch_;
    PackedValues packed_;
    const BarrierRegions& regions_;
    const bool fetches_loads_;
    std::vector<uint32_t> local_offsets_;  // by local, in scratch
    std::vector<bool> rows_only_;          // by local
};

}  // namespace fornax::kernel

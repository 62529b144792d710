// Control flow inside a barrier region. A branch that is the same for all lanes stays a branch; any
// other runs both sides under masks and blends what they give. Lanes that leave a construct early
// wait at its merge.
#pragma once

#include <span>

#include "compiler/kernel/codegen/emit_atomic.h"
#include "compiler/kernel/codegen/emit_slots.h"
#include "compiler/kernel/codegen/emit_subgroup.h"

namespace fornax::kernel {

class ControlEmitter : FunctionPart {
  public:
    // Code that is worth having twice.
    static constexpr uint32_t kMaxCopiedInstructions = 160;

    ControlEmitter(FunctionCode& code,
                   MemoryCode& memory,
                   ValueCode& values,
                   AccessEmitter& accesses,
                   AtomicEmitter& atomics,
                   SubgroupEmitter& subgroups,
                   SpillSlots& spills,
                   const BarrierRegions& regions)
        : FunctionPart(code),
          memory_(memory),
          values_(values),
          accesses_(accesses),
          atomics_(atomics),
          subgroups_(subgroups),
          spills_(spills),
          regions_(regions) {}

    void EmitInstruction(ir::InstId id);

    // --- emit_unmasked.cpp ---
    struct LaneTest {
        llvm::Value* all = nullptr;   // true only if the condition holds in every lane
        llvm::Value* some = nullptr;  // true exactly if it holds in one; both null if not cheap
    };
    LaneTest TestLanes(ir::ValueId condition);
    bool IsEdgeTest(ir::ValueId condition) const;
    // Whether one or more of such tests say together that a lane is outside.
    bool IsOutsideTest(ir::ValueId condition) const;
    // Whether any lane is outside, by scalar comparisons; null if they cannot tell.
    llvm::Value* AnyOutside(ir::ValueId condition);
    uint32_t CountInstructions(ir::BlockId block) const;
    uint32_t SubgroupsWithWork(const BarrierRegion& region) const;

  private:
    void EmitBlock(ir::BlockId block);
    void EmitInstructions(std::span<const ir::InstId> insts);
    void EmitCount(const ir::Instruction& inst);
    void EmitTerminator(ir::InstId id);
    void EmitIf(ir::InstId id);
    bool IsInsideTest(const ir::Instruction& branch) const;
    llvm::Value* LanesCondition(const ir::Instruction& branch, llvm::BasicBlock* merge);
    void EmitSwitch(ir::InstId id);
    void EmitLoop(ir::InstId id);
    void EmitScope(ir::InstId id);
    // `any` says whether the mask has a lane, if that is known in a cheaper way; `likely` that it
    // nearly always has.
    void EmitGuarded(ir::BlockId block,
                     llvm::Value* mask,
                     llvm::Value* any = nullptr,
                     bool likely = false);
    void EmitReturn(ir::InstId id);
    Construct MakeConstruct(ir::InstId id);
    void FinishConstruct(llvm::Value* entry_mask);
    void StoreMerged(llvm::ArrayRef<llvm::AllocaInst*> slots,
                     std::span<const ir::ValueId> into,
                     std::span<const ir::ValueId> from,
                     bool blend);
    void AddLanes(llvm::AllocaInst* mask_slot);
    bool NeedsGuard(std::span<const ir::InstId> insts) const;

    // --- emit_unmasked.cpp ---
    struct UnmaskedLoop {
        size_t test = 0;  // the instruction of the body that lanes may leave at
        bool stays_if = false;
    };
    llvm::Value* AllLanes(ir::ValueId condition);
    bool IsLeftOverTest(ir::ValueId condition) const;
    bool WorthAllLanes(const ir::Instruction& branch) const;
    bool FindUnmaskedLoop(ir::InstId id, UnmaskedLoop& unmasked) const;
    void EmitUnmaskedExit(const UnmaskedLoop& unmasked,
                          const Construct& loop,
                          llvm::BasicBlock* general);
    void EmitUnmaskedLoop(const UnmaskedLoop& unmasked,
                          const Construct& loop,
                          llvm::BasicBlock* general);
    // What of the condition may divide lanes, and what beside it does not.
    std::vector<ir::ValueId> PartsOf(ir::ValueId condition) const;
    std::vector<ir::ValueId> EitherPartsOf(ir::ValueId condition) const;
    bool AreEdges(ir::ValueId condition, std::span<const ir::ValueId> parts) const;
    LaneTest TestPart(ir::ValueId condition);
    bool IsEdge(ir::ValueId comparison) const;
    uint64_t LanesThatPass(ir::ValueId condition) const;

    MemoryCode& memory_;
    ValueCode& values_;
    AccessEmitter& accesses_;
    AtomicEmitter& atomics_;
    SubgroupEmitter& subgroups_;
    SpillSlots& spills_;
    const BarrierRegions& regions_;
};

}  // namespace fornax::kernel

// What keeps memory busy: cache lines that are prefetched, and non-temporal stores.
#pragma once

#include <map>
#include <vector>

#include "compiler/kernel/codegen/emit_values.h"
#include "compiler/kernel/codegen/memory_code.h"
#include "compiler/kernel/index/index_builder.h"

namespace fornax::kernel {

class PrefetchCode : FunctionPart {
  public:
    PrefetchCode(FunctionCode& code, MemoryCode& memory, ValueCode& values);

    bool IsLoaded(const ir::Instruction& store) const;
    bool IsPrefetchedRow(const ir::Instruction& access);
    bool ComputesMuch();
    llvm::Value* StreamMask(const ir::Instruction& store, const MemoryRegion& region);
    void StoreRun(const MemoryRegion& region,
                  llvm::Value* values,
                  llvm::Value* address,
                  llvm::Align align,
                  llvm::ArrayRef<uint64_t> prefetches);
    void FinishStreams();
    void Prefetch(const MemoryRegion& region,
                  llvm::Value* address,
                  llvm::ArrayRef<uint64_t> lines,
                  bool for_store);
    bool FollowsProducts();
    bool RereadsRow(const ir::Instruction& load) const;
    PrefetchTarget NextWorkgroup(ir::ValueId offset);
    llvm::Value* NextTileDistance(const ir::Instruction& load);
    llvm::Value* WorkgroupDistance(ir::ValueId offset);
    bool DiffersByWorkgroup(ir::ValueId value);

  private:
    uint64_t UsualDistance() const;
    const Construct* LoopOverTiles() const;
    bool MayStream(const ir::Instruction& store) const;
    static llvm::Value* NarrowedFrom(llvm::Value* values);
    bool StoreNarrowed(const MemoryRegion& region,
                       llvm::Value* values,
                       llvm::Value* address,
                       llvm::Align align);
    uint64_t BindingOf(const ir::Instruction& access) const;
    IndexExpr WorkgroupStep(ir::ValueId offset);
    llvm::Value* IndexValue(IndexExpr expr, uint32_t& budget);
    llvm::Value* IndexValue(const IndexTerm& term, uint32_t& budget);

    MemoryCode& memory_;
    ValueCode& values_;
    std::map<uint32_t, bool> computes_much_;    // by block
    std::map<uint32_t, bool> multiplies_;       // by block
    std::map<uint64_t, bool> prefetched_rows_;  // by binding
    const std::vector<bool> rereads_;           // by a load's first result: see reread_buffers.h
    IndexBuilder index_;                        // for hints
    std::map<llvm::Value*, llvm::Value*> stream_masks_;  // by the size of the buffer
    bool streams_ = false;
};

}  // namespace fornax::kernel

// Accesses to memory that need no plan: addresses and tests of bounds, gathers and scatters, lane
// by lane, rows of lanes that are transposed.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include <map>
#include <string>
#include <utility>

#include "compiler/kernel/codegen/function_code.h"
#include "compiler/kernel/codegen/memory_region.h"
#include "compiler/kernel/codegen/vector_shuffles.h"

namespace fornax::kernel {

class MemoryCode : FunctionPart {
  public:
    using Values = vectors::Values;

    explicit MemoryCode(FunctionCode& code) : FunctionPart(code) {}

    // --- one address ---
    llvm::Value* ByteAddress(const MemoryRegion& region, llvm::Value* offset);
    llvm::Value* InBounds(const MemoryRegion& region, llvm::Value* offset, uint64_t bytes);
    llvm::Value* LanesInBounds(const MemoryRegion& region, llvm::Value* offsets, uint64_t bytes);
    llvm::Value* ClampScalar(const MemoryRegion& region, llvm::Value* offset, uint64_t bytes);
    llvm::Value* Annotate(const MemoryRegion& region, llvm::Value* access);
    llvm::Value* Zeros();                       // ptr to 256 bytes
    llvm::Value* ToMemory(llvm::Value* value);  // bool to i32
    llvm::Value* FromMemory(llvm::Value* value, ir::Type type);
    llvm::Type* MemoryType(ir::Type type);
    void CompilerFence();
    llvm::Value* ReadClock();
    Values LoadUniform(const MemoryRegion& region,
                       llvm::Value* offset,
                       llvm::Type* type,
                       size_t count);
    void StoreUniform(const MemoryRegion& region,
                      llvm::Value* offset,
                      llvm::ArrayRef<llvm::Value*> scalars);

    // The values of one of two ways, which the condition chooses; the first one is the usual one.
    Values EitherWay(llvm::Value* condition,
                     const std::string& name,
                     llvm::function_ref<Values()> usual,
                     llvm::function_ref<Values()> other);
    Values PackedEitherWay(llvm::Value* condition,
                           const std::string& name,
                           llvm::function_ref<Values()> usual,
                           llvm::function_ref<Values()> other,
                           llvm::Value*& packed);

    // --- emit_gather.cpp ---
    Values Gather(const MemoryRegion& region, llvm::Value* offsets, llvm::Type* type, size_t count);
    Values GatherRuns(const MemoryRegion& region,
                      llvm::Value* offsets,
                      llvm::Type* type,
                      size_t count);
    void Scatter(const MemoryRegion& region,
                 llvm::Value* offsets,
                 llvm::ArrayRef<llvm::Value*> values);

    // --- emit_global.cpp ---
    llvm::Value* LaneAddresses(const MemoryRegion& region,
                               llvm::Value* offsets,
                               uint64_t element,
                               uint64_t index,
                               llvm::Value*& mask);
    // A vector in memory, for code that takes its lanes one by one.
    struct LaneArray {
        llvm::AllocaInst* slot = nullptr;
        llvm::Type* element = nullptr;
    };
    LaneArray SpillLanes(llvm::Value* vector);
    llvm::Value* LoadLane(const LaneArray& array, llvm::Value* lane);
    void StoreLane(const LaneArray& array, llvm::Value* lane, llvm::Value* value);
    void EmitLaneLoop(llvm::Value* mask, llvm::function_ref<void(llvm::Value* lane)> body);

    // --- emit_rows.cpp ---
    Values LoadRows(const MemoryRegion& region,
                    llvm::Value* address,
                    llvm::ArrayRef<uint64_t> lane_bytes,
                    size_t words,
                    llvm::Value*& packed);
    Values ColumnsOf(llvm::ArrayRef<llvm::Value*> parts, size_t count);
    void StoreRows(const MemoryRegion& region,
                   llvm::Value* address,
                   llvm::ArrayRef<uint64_t> lane_bytes,
                   llvm::ArrayRef<llvm::Value*> words);
    void StorePackedRows(const MemoryRegion& region,
                         llvm::Value* address,
                         llvm::ArrayRef<uint64_t> lane_bytes,
                         llvm::Value* packed);

  private:
    // Vectors of what the processor has an instruction for.
    static constexpr uint32_t kLeastGatherBits = 256;
    static constexpr uint32_t kLeastScatterBits = 512;

    void ScatterElements(const MemoryRegion& region,
                         llvm::Value* offsets,
                         llvm::ArrayRef<llvm::Value*> values);
    std::pair<llvm::Value*, llvm::Value*> ElementPlaces(const MemoryRegion& region,
                                                        llvm::Value* offsets,
                                                        uint64_t behind);
    llvm::Value* MaskedGather(const MemoryRegion& region,
                              llvm::Type* type,
                              llvm::Value* base,
                              llvm::Value* offsets,
                              llvm::Value* mask);

    // --- emit_narrow.cpp ---
    llvm::Value* ElementMask(const MemoryRegion& region,
                             llvm::Value* offsets,
                             uint64_t at,
                             uint64_t bytes);
    Values GatherNarrow(const MemoryRegion& region,
                        llvm::Value* offsets,
                        llvm::Type* type,
                        size_t count);
    Values GatherByLane(const MemoryRegion& region,
                        llvm::Value* offsets,
                        llvm::Type* type,
                        size_t count);
    void ScatterNarrow(const MemoryRegion& region,
                       llvm::Value* offsets,
                       llvm::ArrayRef<llvm::Value*> values);
    void StoreByLane(const MemoryRegion& region,
                     llvm::Value* offsets,
                     llvm::Value* values,
                     llvm::Value* mask);

    // --- emit_global.cpp ---
    Values GatherLanes(const MemoryRegion& region,
                       llvm::Value* offsets,
                       llvm::Type* type,
                       size_t count);
    void ScatterLanes(const MemoryRegion& region,
                      llvm::Value* offsets,
                      llvm::ArrayRef<llvm::Value*> values);

    // --- emit_rows.cpp ---
    // Runs of this many words are moved lane by lane and transposed where no pattern tells their
    // places.
    static constexpr size_t kLeastRowWords = 3;
    static constexpr size_t kMostRowWords = 16;
    bool MovesRows(const llvm::Type* type, size_t count) const;
    Values GatherRows(const MemoryRegion& region,
                      llvm::Value* offsets,
                      llvm::Type* type,
                      size_t count);
    void ScatterRows(const MemoryRegion& region,
                     llvm::Value* offsets,
                     llvm::ArrayRef<llvm::Value*> values);
    Values LoadRowsAt(const MemoryRegion& region,
                      llvm::function_ref<llvm::Value*(uint32_t lane)> row_of,
                      size_t words,
                      llvm::Value*& packed);
    llvm::AllocaInst* RowSlot(llvm::Type* type);
    uint32_t TransposedLanes() const;

    llvm::GlobalVariable* zeros_ = nullptr;
    std::map<llvm::Type*, llvm::AllocaInst*> row_slots_;
};

}  // namespace fornax::kernel

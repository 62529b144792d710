// The emitter's state: shared by the files emit*.cpp, each of which holds one concern.
//
//   emit.cpp          the function around the kernel: prologue, workgroup loop
//   emit_regions.cpp  workgroup-level control flow, segments, values that live across barriers
//   emit_prefetch.cpp what the next iteration of a loop will load
//   emit_control.cpp  control flow inside a barrier region: branches, masks, blends
//   emit_full.cpp     the same where all lanes go one way
//   emit_values.cpp   constants, built-ins, pure operations, uniform and varying forms of a value
//   emit_memory.cpp   memory, and accesses to one address
//   emit_plan.cpp     accesses by plan: runs of memory and shuffles
//   emit_gather.cpp, emit_narrow.cpp  words, and 8- and 16-bit elements, at irregular places
//   emit_rows.cpp, emit_speculated.cpp  runs of a lane, transposed; places that are probably
//   regular emit_packed.cpp   runs of elements that stay in the order of memory vector_shuffles.h
//   shuffles of any length emit_global.cpp   device addresses, buffers that differ between lanes,
//   loops over lanes emit_atomic.cpp, region_counters.h  atomics; counters emit_subgroup.cpp
//   operations between the lanes of a subgroup emit_fetch.cpp, emit_shared_code.cpp  prefetches and
//   non-temporal stores; frequent functions emit_lane_reads.cpp  lanes that read lanes named at run
//   time
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/kernel/access/access_plan.h"
#include "compiler/kernel/analysis/address_values.h"
#include "compiler/kernel/analysis/regions.h"
#include "compiler/kernel/analysis/shapes.h"
#include "compiler/kernel/analysis/streams.h"
#include "compiler/kernel/codegen/assumption_check.h"
#include "compiler/kernel/codegen/current_shapes.h"
#include "compiler/kernel/codegen/emit.h"
#include "compiler/kernel/codegen/explain_recorder.h"
#include "compiler/kernel/codegen/memory_region.h"
#include "compiler/kernel/codegen/prefetch_plan.h"
#include "compiler/kernel/codegen/region_counters.h"
#include "compiler/kernel/codegen/segment_layouts.h"
#include "compiler/kernel/codegen/vector_shuffles.h"
#include "compiler/kernel/index/index_builder.h"

namespace fornax::kernel {

class Emitter {
  public:
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
    // --- control-flow contexts ---
    struct Construct {
        ir::InstId inst;
        bool workgroup_level = false;
        bool blend = false;  // results differ by lane: stores are masked
        llvm::BasicBlock* merge = nullptr;
        llvm::BasicBlock* continuing = nullptr;  // Loop
        llvm::SmallVector<llvm::AllocaInst*, 4> results;
        llvm::SmallVector<llvm::AllocaInst*, 4> body_params;
        llvm::SmallVector<llvm::AllocaInst*, 4> continuing_params;
        bool blend_continue = false;
        llvm::AllocaInst* exited = nullptr;     // lanes that reached the merge
        llvm::AllocaInst* continued = nullptr;  // lanes that reached the continuing block
        llvm::AllocaInst* live = nullptr;       // Loop: lanes that run the next iteration
    };

    // Code under another mask, as long as this lives.
    class MaskScope {
      public:
        MaskScope(Emitter& emitter, llvm::Value* mask)
            : emitter_(emitter), outer_(std::exchange(emitter.mask_, mask)) {}
        ~MaskScope() { emitter_.mask_ = outer_; }
        MaskScope(const MaskScope&) = delete;
        MaskScope& operator=(const MaskScope&) = delete;

      private:
        Emitter& emitter_;
        llvm::Value* outer_;
    };

    // --- emit.cpp ---
    void EmitPrologue(const std::string& symbol);
    void EmitWorkgroupLoop();
    llvm::AllocaInst* NewAlloca(llvm::Type* type, const char* name);
    // Anything is in it from here on: PromoteSlots looks no further back.
    llvm::AllocaInst* NewSlot(llvm::Type* type, const char* name);
    llvm::BasicBlock* NewBlock(const char* name);
    bool Terminated() const { return builder_.GetInsertBlock()->getTerminator() != nullptr; }
    void BranchTo(llvm::BasicBlock* block);
    void EmitMaybe(llvm::Value* condition,
                   llvm::BasicBlock* then,
                   llvm::BasicBlock* otherwise,
                   bool likely);
    uint32_t AllocateScratch(uint64_t bytes);
    [[nodiscard]] bool Fail(std::string message);

    // --- emit_regions.cpp ---
    void EmitWorkgroupBlock(ir::BlockId block);
    void EmitWorkgroupConstruct(ir::InstId id);
    void EmitWorkgroupTerminator(ir::InstId id);
    void EmitSegment(uint32_t index);
    void EmitSegmentLoop(uint32_t index, const SegmentLayouts::Layout* layout);
    void UseShapes(const ShapeAnalysis& shapes);
    uint32_t SubgroupsWithWork(const Segment& segment) const;
    uint64_t LanesThatPass(ir::ValueId condition) const;
    void EmitItems(std::span<const SegmentItem> items);
    bool EmitRestIfAllStay(std::span<const SegmentItem> items);
    void EmitItemsUnmasked(std::span<const SegmentItem> items, llvm::Value* all);
    bool WorthCopying(std::span<const SegmentItem> items) const;
    void EmitSegmentItem(const SegmentItem& item);
    void EmitTransfer(ir::InstId id);
    void ImportUntil(size_t end);
    void Import(ir::ValueId value);
    void KeepAcrossSegments(ir::ValueId value);
    llvm::Value* LoadHome(ir::ValueId value);
    void StoreHome(ir::ValueId value, llvm::Value* raw);
    llvm::Value* SlotPointer(ir::ValueId value);
    int64_t LastUse(ir::BlockId block, ir::ValueId value) const;
    void ShareLoopSlots(const ir::Instruction& loop);
    uint32_t SlotOwner(ir::ValueId value) const;
    void TransferTargets(ir::InstId id, std::span<const ir::ValueId>& into);
    llvm::Value* KeptMaskPointer();
    void EmitKeptMaskInit();
    Construct& PushWorkgroupConstruct(ir::InstId id);

    // --- emit_prefetch.cpp ---
    void EmitPrefetches(uint32_t segment);

    // --- emit_control.cpp ---
    void EmitBlock(ir::BlockId block);
    void EmitInstructions(std::span<const ir::InstId> insts);
    void EmitInstruction(ir::InstId id);
    void EmitTerminator(ir::InstId id);
    void EmitIf(ir::InstId id);
    void EmitSwitch(ir::InstId id);
    void EmitLoop(ir::InstId id);
    void EmitScope(ir::InstId id);
    // `any` says whether the mask has a lane, if that is known in a cheaper way.
    void EmitGuarded(ir::BlockId block, llvm::Value* mask, llvm::Value* any = nullptr);
    void EmitReturn(ir::InstId id);
    Construct MakeConstruct(ir::InstId id);
    void FinishConstruct(llvm::Value* entry_mask);
    Construct& FindConstruct(ir::InstId id);
    void StoreMerged(llvm::ArrayRef<llvm::AllocaInst*> slots,
                     std::span<const ir::ValueId> into,
                     std::span<const ir::ValueId> from,
                     bool blend);
    void AddLanes(llvm::AllocaInst* mask_slot);
    bool NeedsGuard(std::span<const ir::InstId> insts) const;

    // --- emit_full.cpp ---
    // Code that is worth having twice.
    static constexpr uint32_t kMaxCopiedInstructions = 160;
    struct LaneTest {
        llvm::Value* all = nullptr;   // true only if the condition holds in every lane
        llvm::Value* some = nullptr;  // true exactly if it holds in one; both null if not cheap
    };
    struct FullLoop {
        size_t test = 0;  // the instruction of the body that lanes may leave at
        bool stays_if = false;
    };
    LaneTest TestLanes(ir::ValueId condition);
    llvm::Value* AllLanes(ir::ValueId condition);
    bool IsEdgeTest(ir::ValueId condition) const;
    uint32_t CountInstructions(ir::BlockId block) const;
    bool IsLeftOverTest(ir::ValueId condition) const;
    bool WorthAllLanes(const ir::Instruction& branch) const;
    bool FindFullLoop(ir::InstId id, FullLoop& full) const;
    void EmitFullExit(const FullLoop& full, const Construct& loop, llvm::BasicBlock* general);
    void EmitFullLoop(const FullLoop& full, const Construct& loop, llvm::BasicBlock* general);

    // --- emit_values.cpp ---
    llvm::Type* VectorOf(llvm::Type* scalar) const;
    llvm::Type* RawType(ir::ValueId value) const;  // of the form in which the value is held
    llvm::Value* Raw(ir::ValueId value);           // scalar or base if scalar-held, else vector
    llvm::Value* Scalar(ir::ValueId value);        // of a uniform value
    llvm::Value* Vector(ir::ValueId value);        // a lane each
    llvm::Value* RowOffset(const Offset& offset, const LayoutRow& row, llvm::Type* type);
    llvm::Value* Convert(ir::ValueId from, ir::ValueId into);  // raw form of `from` for `into`
    llvm::Value* Splat(llvm::Value* scalar);
    llvm::Constant* LaneConstants(llvm::Type* scalar, llvm::ArrayRef<int64_t> values) const;
    void Set(ir::ValueId value, llvm::Value* raw);
    void EmitPure(const ir::Instruction& inst);
    void FindFusable();
    llvm::Value* EmitLate(ir::ValueId value);
    void EmitLaneRange(const ir::Instruction& inst);
    bool DividesByInverse(const ir::Instruction& inst) const;
    llvm::Value* EmitFused(const ir::Instruction& inst, bool scalar);
    llvm::Value* EmitBuiltin(ir::BuiltinId builtin, ir::ValueId result);
    llvm::Value* LocalIdBase(uint32_t dimension);
    llvm::Value* LocalIdVector(uint32_t dimension);
    llvm::Value* Mask();                       // never null
    llvm::Value* MaskBits(llvm::Value* mask);  // an integer of `lanes` bits
    void EmitCount(const ir::Instruction& inst);
    llvm::Value* Any(llvm::Value* mask);
    llvm::Value* AllActive();    // i1; there is a mask
    llvm::Value* FirstActive();  // lane number, i32
    llvm::Value* FromFirstActive(ir::ValueId value);

    // --- emit_memory.cpp ---
    void EmitMemory(const ir::Instruction& inst);
    MemoryRegion BufferRegion(const ir::Instruction& inst, ir::ValueId buffer);
    MemoryRegion SharedRegion(const ir::Instruction& inst);
    MemoryRegion DescriptorRegion(uint64_t binding);
    MemoryRegion PushRegion();
    MemoryRegion ConstantRegion();
    MemoryRegion GlobalRegion(const ir::Instruction& inst);
    Offset OffsetOf(ir::ValueId value);
    void EmitLoad(const ir::Instruction& inst, const MemoryRegion& region, ir::ValueId offset);
    void EmitStore(const MemoryRegion& region,
                   ir::ValueId offset,
                   std::span<const ir::ValueId> values);
    using Values = vectors::Values;
    // A lane each, made where it is needed.
    using LaneOffsets = llvm::function_ref<llvm::Value*()>;
    Values LoadUniform(const MemoryRegion& region,
                       llvm::Value* offset,
                       llvm::Type* type,
                       size_t count);
    void StoreUniform(const MemoryRegion& region,
                      llvm::Value* offset,
                      std::span<const ir::ValueId> values);
    llvm::Value* Zeros();  // ptr to 256 bytes
    void EmitLocal(const ir::Instruction& inst);
    bool HasRowsOnly(uint32_t local);
    llvm::Value* LocalOffset(const ir::Instruction& inst, bool& uniform);
    // The values of one of two ways, which the condition chooses; the first one is the usual one.
    Values EitherWay(llvm::Value* condition,
                     const std::string& name,
                     llvm::function_ref<Values()> usual,
                     llvm::function_ref<Values()> other);
    llvm::Value* ByteAddress(const MemoryRegion& region, llvm::Value* offset);
    llvm::Value* InBounds(const MemoryRegion& region, llvm::Value* offset, uint64_t bytes);
    llvm::Value* LanesInBounds(const MemoryRegion& region, llvm::Value* offsets, uint64_t bytes);
    llvm::Value* ClampScalar(const MemoryRegion& region, llvm::Value* offset, uint64_t bytes);
    llvm::Value* Annotate(const MemoryRegion& region, llvm::Value* access);
    llvm::Value* ToMemory(llvm::Value* value);  // bool to i32
    llvm::Value* FromMemory(llvm::Value* value, ir::Type type);
    llvm::Type* MemoryType(ir::Type type);
    void CompilerFence();
    llvm::Value* ReadClock();

    // --- emit_plan.cpp ---
    AccessPlan PlanOf(const MemoryRegion& region,
                      const Shape& offset,
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

    // --- emit_gather.cpp ---
    // Vectors of what the processor has an instruction for.
    static constexpr uint32_t kLeastGatherBits = 256;
    static constexpr uint32_t kLeastScatterBits = 512;
    Values Gather(const MemoryRegion& region, llvm::Value* offsets, llvm::Type* type, size_t count);
    llvm::Value* MaskedGather(const MemoryRegion& region,
                              llvm::Type* type,
                              llvm::Value* base,
                              llvm::Value* offsets,
                              llvm::Value* mask);
    void Scatter(const MemoryRegion& region,
                 llvm::Value* offsets,
                 llvm::ArrayRef<llvm::Value*> values);

    // --- emit_shared_code.cpp ---
    llvm::Value* ShareCode(const std::string& name,
                           llvm::ArrayRef<llvm::Value*> arguments,
                           llvm::function_ref<llvm::Value*(llvm::ArrayRef<llvm::Value*>)> body);

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

    // --- emit_rows.cpp ---
    Values LoadRows(const MemoryRegion& region,
                    llvm::Value* address,
                    llvm::ArrayRef<uint64_t> lane_bytes,
                    size_t words,
                    llvm::Value*& packed);
    void StoreRows(const MemoryRegion& region,
                   llvm::Value* address,
                   llvm::ArrayRef<uint64_t> lane_bytes,
                   llvm::ArrayRef<llvm::Value*> words);
    uint32_t TransposedLanes() const;

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
                              SpeculatedPattern& pattern,
                              ir::ValueId offset,
                              uint64_t bytes);
    bool IsStreamed(const SpeculatedPattern& pattern, ir::ValueId offset, uint64_t bytes);

    // --- emit_packed.cpp ---
    struct PackedLoad {
        llvm::Value* packed = nullptr;
        llvm::Value* column = nullptr;  // the first element's vector, of the same emission
    };
    void StorePackedRows(const MemoryRegion& region,
                         llvm::Value* address,
                         llvm::ArrayRef<uint64_t> lane_bytes,
                         llvm::Value* packed);
    Values PackedEitherWay(llvm::Value* condition,
                           const std::string& name,
                           llvm::function_ref<Values()> usual,
                           llvm::function_ref<Values()> other,
                           llvm::Value*& packed);
    void KeepPacked(const ir::Instruction& load, llvm::Value* packed);
    llvm::Value* Packed(std::span<const ir::ValueId> values);
    bool FindPacked(std::span<const ir::ValueId> values, uint32_t& budget, bool& loads) const;
    llvm::Value* EmitPacked(std::span<const ir::ValueId> values);

    // --- emit_global.cpp ---
    llvm::Value* LaneAddresses(const MemoryRegion& region,
                               llvm::Value* offsets,
                               uint64_t element,
                               uint64_t index,
                               llvm::Value*& mask);
    Values GatherLanes(const MemoryRegion& region,
                       llvm::Value* offsets,
                       llvm::Type* type,
                       size_t count);
    void ScatterLanes(const MemoryRegion& region,
                      llvm::Value* offsets,
                      llvm::ArrayRef<llvm::Value*> values);
    // A vector in memory, for code that takes its lanes one by one.
    struct LaneArray {
        llvm::AllocaInst* slot = nullptr;
        llvm::Type* element = nullptr;
    };
    LaneArray SpillLanes(llvm::Value* vector);
    llvm::Value* LoadLane(const LaneArray& array, llvm::Value* lane);
    void StoreLane(const LaneArray& array, llvm::Value* lane, llvm::Value* value);
    void EmitLaneLoop(llvm::Value* mask, llvm::function_ref<void(llvm::Value* lane)> body);

    // --- emit_atomic.cpp ---
    void EmitAtomic(const ir::Instruction& inst);
    // Which memory an atomic is on, and how.
    struct AtomicPlace {
        ir::AtomicOp op;
        MemoryRegion region;
        bool shared = false;  // one thread runs the workgroup: no lock
        uint64_t bytes = 0;
    };
    llvm::Value* AtomicOnScalar(const AtomicPlace& place,
                                llvm::Value* offset,
                                llvm::Value* value,
                                llvm::Value* comparand);
    llvm::Value* LoopUntilExchanged(llvm::Value* address,
                                    llvm::Type* type,
                                    llvm::function_ref<llvm::Value*(llvm::Value*)> update);
    llvm::Value* Combine(ir::AtomicOp op, llvm::Value* old, llvm::Value* value);
    llvm::Value* ActiveOrNeutral(ir::AtomicOp op, llvm::Value* vector);
    llvm::Value* ReduceLanes(ir::AtomicOp op, ir::ValueId value);
    void AtomicOnUniform(const ir::Instruction& inst,
                         const AtomicPlace& place,
                         llvm::Value* offset,
                         ir::ValueId value);
    void AtomicByLane(const ir::Instruction& inst,
                      const AtomicPlace& place,
                      llvm::Value* offsets,
                      ir::ValueId value,
                      ir::ValueId comparand);

    // --- emit_subgroup.cpp ---
    void EmitSubgroup(const ir::Instruction& inst);
    void UnmaskMatrices(std::span<const ir::InstId> insts);
    void UnmaskMatrices(std::span<const SegmentItem> items);
    void EmitMatrix(const ir::Instruction& inst);
    void EmitMatrixLoad(const ir::Instruction& inst);
    void EmitShuffle(const ir::Instruction& inst);
    void EmitGroup(const ir::Instruction& inst);
    void EmitPartitioned(const ir::Instruction& inst);
    llvm::Value* EmitPartition(const ir::Instruction& inst);
    llvm::Value* Ballot(ir::ValueId condition);  // i64
    // Lanes that are not there count as the identity; gives a vector, or a scalar for a reduction
    // of all.
    llvm::Value* Combined(const ir::Instruction& inst, llvm::Value* values, llvm::Value* mask);
    llvm::Value* ExtractLane(llvm::Value* vector, llvm::Value* lane);  // a lane that exists
    llvm::Value* ShuffleConstant(llvm::Value* vector, llvm::ArrayRef<int> lanes);
    // Runs `body` with a lane and the lanes left, for the first of the lanes left until it has
    // taken all away; threads one vector through.
    using SetBody = llvm::function_ref<std::pair<llvm::Value*, llvm::Value*>(llvm::Value* lane,
                                                                             llvm::Value* so_far)>;
    llvm::Value* ForEachSet(llvm::Value* initial, SetBody body);

    // --- emit_fetch.cpp ---
    bool IsLoaded(const ir::Instruction& store) const;
    bool ComputesMuch();
    llvm::Value* StreamMask(const ir::Instruction& store, const MemoryRegion& region);
    bool MayStream(const ir::Instruction& store) const;
    void StoreRun(const MemoryRegion& region,
                  llvm::Value* values,
                  llvm::Value* address,
                  llvm::Align align,
                  llvm::ArrayRef<uint64_t> prefetches);
    static llvm::Value* NarrowedFrom(llvm::Value* values);
    bool StoreNarrowed(const MemoryRegion& region,
                       llvm::Value* values,
                       llvm::Value* address,
                       llvm::Align align);
    void FinishStreams();
    void Prefetch(const MemoryRegion& region,
                  llvm::Value* address,
                  llvm::ArrayRef<uint64_t> lines,
                  bool for_store);
    llvm::Value* IndexValue(IndexExpr expr, uint32_t& budget);
    llvm::Value* IndexValue(const IndexTerm& term, uint32_t& budget);
    bool FollowsProducts();
    llvm::Value* NextWorkgroupDistance(const ir::Instruction& load);
    llvm::Value* NextTileDistance(const ir::Instruction& load);
    llvm::Value* WorkgroupDistance(ir::ValueId offset);
    llvm::Value* Distance(IndexExpr step);
    bool DiffersByWorkgroup(ir::ValueId value);

    // --- emit_lane_reads.cpp ---
    llvm::Value* Permute(llvm::Value* vector, llvm::Value* lanes);  // lanes: modulo the width
    llvm::Value* PermuteWords(llvm::Value* words, llvm::Value* lanes);
    llvm::Value* PermuteRegisters(llvm::Value* words, llvm::Value* lanes, uint32_t part_lanes);

    // --- inputs ---
    const ir::Kernel& kernel_;
    CurrentShapes shapes_;
    const Regions& regions_;
    const SegmentLayouts& layouts_;
    const PrefetchPlan* prefetches_;  // null: nothing is fetched ahead
    const bool fetches_loads_;        // computes so much that loads are worth a request ahead
    ExplainRecorder& recorder_;
    llvm::Module& module_;
    llvm::LLVMContext& context_;
    llvm::IRBuilder<> builder_;
    const uint32_t vector_bits_;
    const bool compact_;
    const uint32_t invocations_;
    uint32_t lanes_;      // of the current lane map
    uint32_t subgroups_;  // vectors a workgroup

    // --- the function ---
    llvm::Function* function_ = nullptr;
    llvm::BasicBlock* entry_ = nullptr;          // allocas and what one call needs once
    llvm::BasicBlock* workgroup_end_ = nullptr;  // goes to the next workgroup
    llvm::Value* dispatch_ = nullptr;
    llvm::Value* shared_ = nullptr;
    llvm::Value* scratch_ = nullptr;
    llvm::Value* push_constants_ = nullptr;
    llvm::Value* workgroup_id_[3] = {};
    llvm::Value* num_workgroups_[3] = {};
    llvm::GlobalVariable* constant_data_ = nullptr;
    llvm::GlobalVariable* zeros_ = nullptr;
    std::shared_ptr<class MatrixEmitter> matrices_;
    // For all lanes a ptr and an i64; where lanes have their own, two vectors of i64.
    struct Descriptor {
        llvm::Value* address = nullptr;
        llvm::Value* size = nullptr;
        bool by_lane() const { return address && address->getType()->isVectorTy(); }
    };
    llvm::Value* DescriptorMemory(const ir::Binding& binding);
    Descriptor LoadDescriptor(const ir::Binding& binding, llvm::Value* element);
    std::map<uint64_t, llvm::Value*> descriptor_memory_;  // by binding
    Descriptor LoadDescriptorLanes(const ir::Binding& binding, llvm::Value* elements);
    llvm::Value* LastElement(const ir::Binding& binding);  // i32
    void EmitDescriptor(const ir::Instruction& inst);
    std::map<std::pair<uint64_t, uint64_t>, Descriptor> constant_descriptors_;  // binding, element
    llvm::MDNode* scopes_[4] = {};  // buffers, shared, scratch, constants
    llvm::MDNode* noalias_[4] = {};
    struct SharedCode {
        uint32_t copies = 0;  // inline
        llvm::Type* result = nullptr;
        llvm::Function* function = nullptr;
    };
    std::map<std::pair<std::string, uint32_t>, SharedCode> shared_code_;  // by name and lanes
    uint64_t scratch_bytes_ = 0;
    std::string error_;

    // --- the current point ---
    uint32_t epoch_ = 0;                           // 0 at workgroup level, else segment + 1
    llvm::Value* subgroup_ = nullptr;              // i32
    llvm::Value* lane_base_ = nullptr;             // i32: subgroup * lanes
    llvm::Value* mask_ = nullptr;                  // null: every lane is active
    llvm::Value* workgroups_in_vector_ = nullptr;  // null: one
    bool own_map_ = true;                          // it is the kernel's, not one of a segment
    llvm::BasicBlock* segment_end_ = nullptr;
    const Segment* segment_ = nullptr;
    size_t imported_ = 0;  // of its imports
    std::vector<Construct> constructs_;

    struct Held {
        llvm::Value* raw = nullptr;
        Descriptor descriptor;  // of Buffer values
        uint32_t epoch = UINT32_MAX;
        bool late = false;  // computed where it is used
    };
    std::vector<Held> held_;
    std::map<uint32_t, PackedLoad> packed_loads_;  // by a load's first result
    struct Slot {
        llvm::AllocaInst* alloca = nullptr;
        uint32_t offset = UINT32_MAX;  // in scratch
        uint32_t stride = 0;           // bytes a subgroup
    };
    std::vector<Slot> slots_;              // by value
    std::vector<ir::ValueId> slot_owner_;  // by value: whose slot it shares, invalid for its own
    std::vector<llvm::AllocaInst*> conditions_;  // by instruction: workgroup-level branches
    std::vector<uint32_t> local_offsets_;        // by local, in scratch
    std::vector<bool> rows_only_;                // by local
    Slot kept_mask_;
    std::vector<uint32_t> uses_;              // by value
    std::map<uint32_t, bool> computes_much_;  // by block
    std::map<uint32_t, bool> multiplies_;     // by block
    const std::vector<bool> rereads_;         // by a load's first result: see reread_buffers.h
    IndexBuilder index_;                      // for hints
    std::map<llvm::Value*, llvm::Value*> stream_masks_;  // by the size of the buffer
    bool streams_ = false;
    RegionCounters counts_;
    // By value: a product that all its uses may fuse with an addition.
    std::vector<bool> fusable_;
    // By value: only says where lanes access memory, and is computed where one has to look at each.
    std::vector<bool> address_only_;
    std::map<uint32_t, llvm::Value*> late_;  // by value, while one is computed
    uint32_t late_depth_ = 0;
};

}  // namespace fornax::kernel

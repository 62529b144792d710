// The function that is being emitted, and the point in it that the emitter has come to: what all
// concerns of the emitter share, and nothing that knows a value of the kernel. Each concern is a
// class that is given this and the concerns below it:
//
//   function_code.h   blocks, slots, masks, code that is shared
//   memory_code.h     addresses, bounds, gathers, scatters, lane by lane: accesses without a plan
//   emit_values.h     values as scalars and as a lane each, pure operations
//   memory_regions.h  descriptors, and what is known of the memory behind each
//   emit_fetch.h      cache lines that are prefetched, non-temporal stores
//   emit_packed.h     runs of elements that stay in the order of memory
//   emit_memory.h     loads and stores: plans, speculation
//   emit_atomic.h     atomics
//   emit_subgroup.h   operations between lanes, matrices
//   emit_slots.h      values that live across barriers
//   emit_control.h    branches, loops and masks between barriers
//   emitter.h         the loop over workgroups, barrier regions
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/kernel/codegen/current_lane_analysis.h"
#include "compiler/kernel/codegen/emit.h"
#include "compiler/kernel/codegen/explain_recorder.h"
#include "compiler/kernel/codegen/region_counters.h"

namespace fornax::kernel {

class MatrixEmitter;

// A construct around the current point.
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

struct FunctionCode {
    static constexpr uint64_t kMaxScratchBytes = 64u << 20;

    FunctionCode(const ir::Kernel& kernel,
                 const LaneAnalysis& patterns,
                 ExplainRecorder& recorder,
                 const EmitOptions& options,
                 llvm::Module& module);
    FunctionCode(const FunctionCode&) = delete;
    FunctionCode& operator=(const FunctionCode&) = delete;

    void UseLaneAnalysis(const LaneAnalysis& used);

    llvm::AllocaInst* NewAlloca(llvm::Type* type, const char* name);
    // Anything is in it from here on: PromoteSlots looks no further back.
    llvm::AllocaInst* NewSlot(llvm::Type* type, const char* name);
    llvm::BasicBlock* NewBlock(const char* name);
    bool Terminated() const { return builder.GetInsertBlock()->getTerminator() != nullptr; }
    void BranchTo(llvm::BasicBlock* block);
    void EmitMaybe(llvm::Value* condition,
                   llvm::BasicBlock* then,
                   llvm::BasicBlock* otherwise,
                   bool likely);
    uint32_t AllocateScratch(uint64_t bytes);
    llvm::Value* ShareCode(const std::string& name,
                           llvm::ArrayRef<llvm::Value*> arguments,
                           llvm::function_ref<llvm::Value*(llvm::ArrayRef<llvm::Value*>)> body);
    Construct& FindConstruct(ir::InstId id);

    llvm::Type* VectorOf(llvm::Type* scalar) const;
    llvm::Value* Splat(llvm::Value* scalar);
    llvm::Constant* LaneConstants(llvm::Type* scalar, llvm::ArrayRef<int64_t> values) const;
    llvm::Value* Mask();                           // never null
    llvm::Value* MaskBits(llvm::Value* of_lanes);  // an integer of `lanes` bits
    llvm::Value* Any(llvm::Value* of_lanes);
    llvm::Value* AllActive();    // i1; there is a mask
    llvm::Value* FirstActive();  // lane number, i32

    // --- what is emitted, for what ---
    const ir::Kernel& kernel;
    CurrentLaneAnalysis patterns;
    ExplainRecorder& recorder;
    llvm::Module& module;
    llvm::LLVMContext& context;
    llvm::IRBuilder<> builder;
    const uint32_t vector_bits;
    const bool compact;
    const uint32_t invocations;
    uint32_t lanes;       // of the current lane map
    uint32_t subgroups;   // vectors a workgroup
    bool own_map = true;  // it is the kernel's, not one of a region

    // --- the function ---
    llvm::Function* function = nullptr;
    llvm::BasicBlock* entry = nullptr;  // allocas and what one call needs once
    llvm::Value* dispatch = nullptr;
    llvm::Value* shared = nullptr;
    llvm::Value* scratch = nullptr;
    llvm::Value* push_constants = nullptr;
    llvm::Value* workgroup_id[3] = {};
    llvm::Value* num_workgroups[3] = {};
    llvm::MDNode* scopes[4] = {};  // buffers, shared, scratch, constants
    llvm::MDNode* noalias[4] = {};
    uint64_t scratch_bytes = 0;
    std::shared_ptr<MatrixEmitter> matrices;  // null: the kernel has none
    RegionCounters counts;
    struct SharedCode {
        uint32_t copies = 0;  // inline
        llvm::Type* result = nullptr;
        llvm::Function* function = nullptr;
    };
    std::map<std::pair<std::string, uint32_t>, SharedCode> shared_code;  // by name and lanes

    // --- the current point ---
    uint32_t epoch = 0;                           // 0 at workgroup level, else region + 1
    llvm::Value* subgroup = nullptr;              // i32
    llvm::Value* lane_base = nullptr;             // i32: subgroup * lanes
    llvm::Value* mask = nullptr;                  // null: every lane is active
    llvm::Value* workgroups_in_vector = nullptr;  // null: one
    llvm::BasicBlock* region_end = nullptr;
    std::vector<Construct> constructs;  // around it, the innermost last
};

// A concern of the emitter: names for what all of them take from the function.
class FunctionPart {
  public:
    FunctionPart(const FunctionPart&) = delete;
    FunctionPart& operator=(const FunctionPart&) = delete;

  protected:
    explicit FunctionPart(FunctionCode& code) : code_(code) {}
    ~FunctionPart() = default;

    FunctionCode& code_;
    const ir::Kernel& kernel_ = code_.kernel;
    CurrentLaneAnalysis& patterns_ = code_.patterns;
    llvm::IRBuilder<>& builder_ = code_.builder;
    ExplainRecorder& recorder_ = code_.recorder;
};

// Code under another mask, as long as this lives.
class MaskScope {
  public:
    MaskScope(FunctionCode& code, llvm::Value* mask)
        : code_(code), outer_(std::exchange(code.mask, mask)) {}
    ~MaskScope() { code_.mask = outer_; }
    MaskScope(const MaskScope&) = delete;
    MaskScope& operator=(const MaskScope&) = delete;

  private:
    FunctionCode& code_;
    llvm::Value* outer_;
};

}  // namespace fornax::kernel

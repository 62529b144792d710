// Code for matrices that a subgroup holds together (ir/matrix.h). Here one is a few vectors, of a
// lane's elements each, which end to end are its rows. Multiply-accumulates (MMAs) are commands to
// the matrix unit: which registers they use, and which of them are issued together, is decided
// here.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/kernel/analysis/matrix_accumulators.h"
#include "compiler/kernel/analysis/matrix_shared_operands.h"
#include "compiler/kernel/analysis/matrix_views.h"
#include "compiler/kernel/codegen/matrix_unit.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

class MatrixEmitter {
  public:
    using Vectors = std::vector<llvm::Value*>;

    // `entry` takes the memory that is needed. `shared`: workgroup memory. `regions`: null if
    // subgroups do not run one after the other, or invocations are not taken in order.
    MatrixEmitter(const ir::Kernel& kernel,
                  const BarrierRegions* regions,
                  llvm::IRBuilder<>& builder,
                  llvm::BasicBlock& entry,
                  llvm::Value* shared,
                  ExplainRecorder& recorder);

    // Before a region's code, which runs for one subgroup after the other, and behind it.
    void BeginRegion(uint32_t region);
    void EndRegion();
    // Cache lines that the region prefetches while it multiplies: of requests that come together
    // the processor drops most. They are distributed among the region's `mmas`.
    void PrefetchMeanwhile(Vectors addresses, size_t mmas);
    // Goes before every instruction of the kernel: false for one that has nothing left to do.
    // MMAs whose accumulators stay in private memory wait for others, and are issued before
    // anything looks at the accumulators (Flush at the latest, in the block where they are).
    bool Before(ir::InstId id, const ir::Instruction& inst, bool masked);
    void Flush();
    // Which of an MMA's operands need no vectors: A, B and the accumulator.
    std::array<bool, 3> InMemory(const ir::Instruction& inst, bool masked) const;
    // `operands`: three matrices, one after the other, null where InMemory says so. `masked`: lanes
    // may be missing. `subgroup`: its number. Gives nothing where the accumulator stays in
    // memory, which all uses of it then do.
    Vectors MulAdd(const ir::Instruction& inst,
                   llvm::ArrayRef<llvm::Value*> operands,
                   llvm::Value* subgroup,
                   bool masked);
    // Emits what it is given for the arguments, or a call of a function that has been made of it.
    using ShareCode = llvm::function_ref<llvm::Value*(
        llvm::ArrayRef<llvm::Value*> arguments,
        llvm::function_ref<llvm::Value*(llvm::ArrayRef<llvm::Value*>)> body)>;
    // `share`: null for code in place.
    Vectors Transpose(llvm::ArrayRef<llvm::Value*> matrix, ShareCode share);
    // Where a matrix_load finds its matrix. `size`, in bytes: what is outside reads 0; null: all is
    // inside. `offset` and `stride`: as the operands. `any`: false if nothing may be read; or null.
    struct Source {
        llvm::Value* base = nullptr;
        llvm::Value* size = nullptr;
        llvm::Value* offset = nullptr;
        llvm::Value* stride = nullptr;
        llvm::Value* any = nullptr;
    };
    // Gives nothing if only MMAs that take the matrix from where it lies use it.
    Vectors Load(ir::InstId id, const Source& source);
    // When all of the kernel's code is there.
    void Finish(llvm::Function& kernel);

  private:
    // What was made of a matrix in the current block, where it is found again.
    struct Made {
        Vectors from;
        uint32_t how = 0;
        llvm::Value* slot = nullptr;
        Vectors transposed;
    };
    // c += a * b, all in memory.
    struct Mma {
        MatrixAccumulators::Location location;  // of c
        llvm::Value* c = nullptr;
        MatrixOperand a;
        MatrixOperand b;
    };
    // Accumulators whose MMAs share the operands A, or B, step by step.
    using Steps = std::vector<std::pair<MatrixOperand, MatrixOperand>>;
    struct Accumulator {
        MatrixAccumulators::Location location;
        llvm::Value* c = nullptr;
        Steps steps;
        bool done = false;
    };
    // An accumulator that goes from MMA to MMA, in memory.
    struct Chain {
        llvm::Value* slot = nullptr;
        llvm::Type* type = nullptr;  // of its vectors
        // MatrixAccumulators::InChain::chain; nothing: the slot is free.
        std::optional<uint32_t> is;
    };
    size_t OpenChain(uint32_t chain, llvm::ArrayRef<llvm::Value*> accumulators);
    Vectors CloseChain(Chain& chain, size_t count);
    uint32_t RowsInPlace(const ir::Instruction& inst, const MatrixKind& kind);
    MatrixOperand PackedOnce(uint32_t operand, const MatrixKind& kind);
    MatrixOperand OperandOf(const ir::Instruction& inst,
                            llvm::ArrayRef<llvm::Value*> operands,
                            const MatrixKind& kind,
                            bool is_b,
                            const llvm::Value* keep);
    llvm::Value* OfSubgroup(llvm::ArrayRef<uint32_t> by_subgroup);
    void EmitMmas(std::vector<Accumulator>& accumulators);
    void EmitMma(const std::vector<Accumulator*>& group);
    Made* Find(llvm::ArrayRef<llvm::Value*> from, uint32_t how);
    Made& Add(llvm::ArrayRef<llvm::Value*> from, uint32_t how);

    llvm::Value* Packed(llvm::ArrayRef<llvm::Value*> matrix,
                        const MatrixKind& kind,
                        bool is_b,
                        const llvm::Value* keep);
    llvm::Value* AddSaturating(llvm::Value* accumulator, llvm::Value* mmas, uint64_t flags);

    const ir::Kernel& kernel_;
    llvm::IRBuilder<>& b_;
    llvm::BasicBlock& entry_;
    MatrixUnit unit_;
    const MatrixAccumulators accumulators_;
    const MatrixViews views_;
    std::map<uint32_t, MatrixOperand> loaded_;  // by matrix_load: where its matrix lies
    MatrixSharedOperands shared_operands_;
    llvm::Value* shared_ = nullptr;
    llvm::Value* packed_ = nullptr;     // memory for packed operands of a workgroup
    uint64_t packed_bytes_ = 0;         // of each
    llvm::Value* is_packed_ = nullptr;  // a byte each
    const MatrixSharedOperands::InRegion* region_ = nullptr;
    llvm::Value* subgroup_ = nullptr;
    std::map<uint32_t, MatrixOperand> taken_;  // by operand: where it is, in the current block
    llvm::BasicBlock* taken_block_ = nullptr;
    llvm::BasicBlock* block_ = nullptr;  // that `made_` is for
    std::vector<Made> made_;
    std::vector<llvm::Value*> slots_;  // memory for an operand each, taken in turn
    size_t next_slot_ = 0;
    std::vector<Chain> chains_;
    Vectors prefetches_;
    size_t next_prefetch_ = 0;
    size_t mmas_to_come_ = 0;
    llvm::Value* prefetch_array_ = nullptr;  // the same, in memory
    std::vector<Mma> waiting_;
    MatrixKind waiting_kind_;  // of each of them
};

}  // namespace fornax::kernel

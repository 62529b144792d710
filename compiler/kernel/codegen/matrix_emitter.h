// Code for matrices that a subgroup holds together (ir/matrix.h). Here one is a few vectors, of a
// lane's elements each, which end to end are its rows.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/kernel/analysis/matrix_places.h"
#include "compiler/kernel/codegen/matrix_commands.h"
#include "compiler/kernel/codegen/matrix_tiles.h"
#include "compiler/kernel/ir/ir.h"

namespace fornax::kernel {

class MatrixEmitter {
  public:
    using Vectors = std::vector<llvm::Value*>;

    // `entry` takes the memory that is needed.
    MatrixEmitter(const ir::Kernel& kernel,
                  llvm::IRBuilder<>& builder,
                  llvm::BasicBlock& entry,
                  uint32_t vector_bits,
                  ExplainRecorder& recorder)
        : b_(builder),
          entry_(entry),
          vector_bits_(vector_bits),
          recorder_(recorder),
          commands_(builder, entry, recorder),
          places_(FindMatrixPlaces(kernel)) {}

    // Goes before every instruction of the kernel: false for one that has nothing left to do.
    // Products whose sums stay in private memory wait for others, and are made before anything
    // looks at the sums (Flush at the latest, in the block where they are).
    bool Before(ir::InstId id, const ir::Instruction& inst, bool masked);
    void Flush();
    // `operands`: three matrices, one after the other. `masked`: lanes may be missing. Gives
    // nothing where the sum stays in private memory, which all uses of it then do.
    Vectors MulAdd(const ir::Instruction& inst, llvm::ArrayRef<llvm::Value*> operands, bool masked);
    Vectors Transpose(llvm::ArrayRef<llvm::Value*> matrix);
    // When all of the kernel's code is there.
    void Finish(llvm::Function& kernel);

  private:
    // What was made of a matrix in the current block, where it is found again.
    struct Made {
        Vectors from;
        uint64_t how = 0;
        llvm::Value* slot = nullptr;
        Vectors transposed;
    };
    // c += a * b, of places in memory.
    struct Product {
        MatrixPlaces::Place place;  // of c
        llvm::Value* c = nullptr;
        llvm::Value* a = nullptr;
        llvm::Value* b = nullptr;
    };
    // Sums that gain products of the same factors of A, or of B, step by step.
    using Steps = std::vector<std::pair<llvm::Value*, llvm::Value*>>;
    struct Sum {
        MatrixPlaces::Place place;
        llvm::Value* c = nullptr;
        Steps steps;
        bool done = false;
    };
    bool UsesTiles(const llvm::Value* factor, uint64_t flags);
    void EmitProduct(const Product& product, const llvm::Value* factor, uint64_t flags);
    void EmitTiles(std::vector<Sum>& sums);
    void Count(hal::MatrixFormat format, uint32_t sums, uint32_t steps);
    Made* Find(llvm::ArrayRef<llvm::Value*> from, uint64_t how);
    Made& Add(llvm::ArrayRef<llvm::Value*> from, uint64_t how);

    Vectors Regroup(llvm::ArrayRef<llvm::Value*> vectors, unsigned width);
    llvm::Value* NewSlot(uint64_t bytes);
    void Store(llvm::ArrayRef<llvm::Value*> matrix, llvm::Value* slot);
    llvm::Value* Packed(llvm::ArrayRef<llvm::Value*> matrix,
                        uint64_t flags,
                        bool is_b,
                        const llvm::Value* keep);
    Vectors Factors(llvm::ArrayRef<llvm::Value*> matrix, uint64_t flags, bool is_signed);
    Vectors AlternateRows(llvm::ArrayRef<llvm::Value*> matrix);
    llvm::Value* AddSaturating(llvm::Value* sum, llvm::Value* products, uint64_t flags);

    llvm::IRBuilder<>& b_;
    llvm::BasicBlock& entry_;
    const uint32_t vector_bits_;
    ExplainRecorder& recorder_;
    MatrixCommands commands_;
    const MatrixPlaces places_;
    llvm::BasicBlock* block_ = nullptr;  // that `made_` is for
    std::vector<Made> made_;
    std::vector<llvm::Value*> slots_;  // memory for a factor each, taken in turn
    size_t next_slot_ = 0;
    llvm::Value* sum_slot_ = nullptr;
    std::optional<TileFactors> tiles_;  // that the matrix unit is set up for
    std::vector<Product> waiting_;
    uint64_t waiting_flags_ = 0;  // of each of them
};

}  // namespace fornax::kernel

// The test of a guess about lanes (analysis/guessed_offsets.h), in scalar registers.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

#include <map>

#include "compiler/kernel/analysis/guessed_offsets.h"

namespace fornax::kernel {

// How an access' offsets probably differ between the lanes.
struct GuessedPattern {
    Shape shape;
    int64_t lowest = 0;  // what the lowest lane's offset lies behind the lanes' base
    LaneGuesses guesses;
    llvm::Value* base = nullptr;    // the lowest offset, when the test is there
    llvm::Value* stride = nullptr;  // likewise, if there are rows
};

// Computes what the lanes' values share by the operations that computed the values, and collects
// what has to hold at each of them for the lanes to differ as was guessed: that a sum's low bits
// leave room for what lanes add before they are shifted out, for instance. Where no rule is known,
// the lanes' own values are compared.
class GuessCheck {
  public:
    // What the emitter has of a value at the current point.
    struct Source {
        // Whether it can be used there.
        llvm::function_ref<bool(ir::ValueId)> is_here;
        // The value of one that is held in a scalar register.
        llvm::function_ref<llvm::Value*(ir::ValueId)> scalar;
        // A lane each.
        llvm::function_ref<llvm::Value*(ir::ValueId)> vector;
    };

    GuessCheck(const ir::Kernel& kernel,
               const ShapeAnalysis& shapes,
               LaneGuesses& guesses,
               llvm::IRBuilder<>& builder,
               Source source)
        : kernel_(kernel), shapes_(shapes), guesses_(guesses), b_(builder), source_(source) {}

    // The value of each lane less what was guessed for it, if the guess is right. There is one.
    llvm::Value* Base(ir::ValueId value) { return Shared(value).base; }
    // What its rows are multiples of; null if the guess has none.
    llvm::Value* Stride(ir::ValueId value) { return Shared(value).stride; }
    // i1: all guesses that bases were asked for are right.
    llvm::Value* Holds();

  private:
    using Lanes = LaneGuesses::Lanes;
    // What lanes have in common.
    struct Common {
        llvm::Value* base = nullptr;
        llvm::Value* stride = nullptr;
    };

    const Common& Shared(ir::ValueId value);
    Common Compute(ir::ValueId value);
    Common OfOperation(const ir::Instruction& inst, ir::ValueId value);
    Common OfSum(const ir::Instruction& inst);
    Common OfProduct(const ir::Instruction& inst);
    Common OfQuotient(const ir::Instruction& inst);
    Common OfQuotient(ir::ValueId dividend, uint64_t size, bool is_signed);
    Common OfRest(ir::ValueId dividend, uint64_t size);
    Common Compare(ir::ValueId value, const Lanes& lanes);
    template <typename Map>
    Common Each(ir::ValueId value, Map&& map);
    llvm::Value* Lane(ir::ValueId value, size_t lane);
    llvm::Value* Apply(const ir::Instruction& inst, uint32_t result);
    void NeedsRoom(llvm::Value* base, llvm::Value* rest, uint64_t size, const Lanes& parts);
    void NeedsMultiple(llvm::Value* stride, uint64_t size);
    bool NeedsNoWrap(ir::ValueId value, bool is_signed);
    void Require(llvm::Value* condition) { conditions_.push_back(condition); }

    const ir::Kernel& kernel_;
    const ShapeAnalysis& shapes_;
    LaneGuesses& guesses_;
    llvm::IRBuilder<>& b_;
    const Source source_;
    std::map<uint32_t, Common> shared_;  // by value
    llvm::SmallVector<llvm::Value*, 8> conditions_;
};

}  // namespace fornax::kernel

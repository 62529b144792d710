// What scalars of an innermost loop are in each of its turns, as far as that is known before the
// first one: a start and a constant step.
#pragma once

#include <llvm/ADT/APInt.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/InstSimplifyFolder.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/IRBuilder.h>

#include <map>
#include <optional>
#include <tuple>

#include "compiler/kernel/ir/builder.h"

namespace fornax::kernel {

// Finds them by the operations that compute them. What it needs of the first turn it computes at
// the end of the loop's preheader, each thing once; what nobody uses of it is left to others.
class TurnValues {
  public:
    using Builder = llvm::IRBuilder<llvm::InstSimplifyFolder>;

    // root + turn * step <= last, unsigned and without wrapping: in the turns of which it is true
    // a value is what was found.
    struct Limit {
        llvm::Value* root = nullptr;
        llvm::APInt step;
        llvm::Value* last = nullptr;

        bool operator==(const Limit& other) const {
            return root == other.root && last == other.last && step == other.step;
        }
    };
    using Limits = llvm::SmallVector<Limit, 4>;

    // root + offset + turn * step, modulo 2^bits. `root` is known before the loop.
    struct Linear {
        llvm::Value* root = nullptr;
        llvm::APInt offset;
        llvm::APInt step;
        Limits limits;

        bool same() const { return step.isZero(); }
    };

    // `incoming_of`: the only value that a phi can have in a turn, null if there is more than one.
    TurnValues(const llvm::Loop& loop,
               llvm::function_ref<llvm::Value*(llvm::PHINode&)> incoming_of);

    // The recurrence of an integer; null if nothing is known. Valid until the next call.
    const Linear* Of(llvm::Value* value);
    llvm::Value* First(const Linear& linear) { return Sum(linear.root, linear.offset); }
    // With the limit that it does not pass `last`. Null if none says so.
    std::optional<Limits> Within(const Linear& linear, const llvm::APInt& last);
    Builder& before() { return before_; }

  private:
    std::optional<Linear> Compute(llvm::Value* value);
    std::optional<Linear> OfHeaderPhi(llvm::PHINode& phi);
    std::optional<Linear> OfCast(llvm::CastInst& cast);
    std::optional<Linear> OfBinary(llvm::BinaryOperator& inst);
    std::optional<Linear> OfAnd(Linear value, const llvm::APInt& mask);
    std::optional<Linear> OfQuotient(llvm::BinaryOperator& inst,
                                     Linear value,
                                     const llvm::APInt& by);
    std::optional<Linear> OfRepeated(llvm::Instruction& inst);
    std::optional<llvm::APInt> StepOf(llvm::PHINode& phi);
    llvm::Value* Binary(llvm::Instruction::BinaryOps op, llvm::Value* a, llvm::Value* b);
    llvm::Value* Sum(llvm::Value* root, const llvm::APInt& offset);
    void Settle(Linear& linear);

    const llvm::Loop& loop_;
    llvm::function_ref<llvm::Value*(llvm::PHINode&)> incoming_of_;
    Builder before_;
    llvm::DenseMap<llvm::Value*, std::optional<Linear>> known_;
    std::map<std::tuple<unsigned, llvm::Value*, llvm::Value*>, llvm::Value*> computed_;
    uint32_t depth_ = 0;
};

}  // namespace fornax::kernel

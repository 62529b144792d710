// What scalars of an innermost loop are in each of its iterations, as far as that is known before
// the first one: a start and a constant stride.
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

// Finds them by the operations that compute them. What it needs of the first iteration it computes
// at the end of the loop's preheader, each thing once; what nobody uses of it is left to others.
class Recurrences {
  public:
    using Builder = llvm::IRBuilder<llvm::InstSimplifyFolder>;

    // root + iteration * stride <= last, unsigned and without wrapping: in the iterations of which
    // it is true a value is what was found.
    struct Limit {
        llvm::Value* root = nullptr;
        llvm::APInt stride;
        llvm::Value* last = nullptr;

        bool operator==(const Limit& other) const {
            return root == other.root && last == other.last && stride == other.stride;
        }
    };
    using Limits = llvm::SmallVector<Limit, 4>;

    // root + offset + iteration * stride, modulo 2^bits. `root` is known before the loop.
    struct Recurrence {
        llvm::Value* root = nullptr;
        llvm::APInt offset;
        llvm::APInt stride;
        Limits limits;

        bool same() const { return stride.isZero(); }
    };

    // `incoming_of`: the only value that a phi can have in an iteration, null if there is more than
    // one.
    Recurrences(const llvm::Loop& loop,
                llvm::function_ref<llvm::Value*(llvm::PHINode&)> incoming_of);

    // The recurrence of an integer, if something is known.
    std::optional<Recurrence> Of(llvm::Value* value);
    llvm::Value* First(const Recurrence& recurrence) {
        return Sum(recurrence.root, recurrence.offset);
    }
    // With the limit that it does not pass `last`. Null if none says so.
    std::optional<Limits> Within(const Recurrence& recurrence, const llvm::APInt& last);
    Builder& before() { return before_; }

  private:
    std::optional<Recurrence> Compute(llvm::Value* value);
    std::optional<Recurrence> OfHeaderPhi(llvm::PHINode& phi);
    std::optional<Recurrence> OfCast(llvm::CastInst& cast);
    std::optional<Recurrence> OfBinary(llvm::BinaryOperator& inst);
    std::optional<Recurrence> OfAnd(Recurrence value, const llvm::APInt& mask);
    std::optional<Recurrence> OfQuotient(llvm::BinaryOperator& inst,
                                         Recurrence value,
                                         const llvm::APInt& by);
    std::optional<Recurrence> OfRepeated(llvm::Instruction& inst);
    std::optional<llvm::APInt> StrideOf(llvm::PHINode& phi);
    llvm::Value* Binary(llvm::Instruction::BinaryOps op, llvm::Value* a, llvm::Value* b);
    llvm::Value* Sum(llvm::Value* root, const llvm::APInt& offset);
    void Settle(Recurrence& recurrence);

    const llvm::Loop& loop_;
    llvm::function_ref<llvm::Value*(llvm::PHINode&)> incoming_of_;
    Builder before_;
    llvm::DenseMap<llvm::Value*, std::optional<Recurrence>> known_;
    std::map<std::tuple<unsigned, llvm::Value*, llvm::Value*>, llvm::Value*> computed_;
    uint32_t depth_ = 0;
};

}  // namespace fornax::kernel

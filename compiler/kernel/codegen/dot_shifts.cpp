#include "compiler/kernel/codegen/dot_shifts.h"

#include <optional>

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Local.h>

namespace fornax::kernel {

using llvm::APInt;
using llvm::Instruction;
using llvm::Value;
namespace match = llvm::PatternMatch;

namespace {

// One shift in place of another pays nothing.
constexpr size_t kLeastDots = 2;
// Sums of so many dot products of four bytes, 255 * 128 each at most, fit in 32 bits.
constexpr size_t kMostDots = 1024;
constexpr unsigned kByteBits = 8;

llvm::IntrinsicInst* AsDot(Value* value) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(value);
    if (!call) {
        return nullptr;
    }
    switch (call->getIntrinsicID()) {
        case llvm::Intrinsic::x86_avx512_vpdpbusd_128:
        case llvm::Intrinsic::x86_avx512_vpdpbusd_256:
        case llvm::Intrinsic::x86_avx512_vpdpbusd_512:
            return call;
        default:
            return nullptr;
    }
}

// What is multiplied: fields of `words`, shifted down by `shift` and masked, all of the vector or
// the part that `part` takes of it.
struct Fields {
    Value* words = nullptr;
    Value* shift = nullptr;
    Value* mask = nullptr;
    llvm::ShuffleVectorInst* part = nullptr;

    bool IsLike(const Fields& other) const {
        return shift == other.shift && mask == other.mask && !part == !other.part &&
               (!part || (part->getType() == other.part->getType() &&
                          part->getShuffleMask() == other.part->getShuffleMask()));
    }
};

// A vector, or parts of it, that only dot products use, as the unsigned operand.
bool IsMultipliedOnly(const Value& vector, bool whole = true) {
    return llvm::all_of(vector.uses(), [&](const llvm::Use& use) {
        return (AsDot(use.getUser()) && use.getOperandNo() == 1) ||
               (whole && llvm::isa<llvm::ShuffleVectorInst>(use.getUser()) &&
                IsMultipliedOnly(*use.getUser(), /*whole=*/false));
    });
}

std::optional<Fields> FieldsOf(Value* bytes) {
    Fields fields;
    if (auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(bytes);
        shuffle && llvm::isa<llvm::UndefValue>(shuffle->getOperand(1))) {
        fields.part = shuffle;
        bytes = shuffle->getOperand(0);
    }
    Value* shifted = nullptr;
    const APInt* mask = nullptr;
    if (!match::match(bytes, match::m_And(match::m_Value(shifted), match::m_APInt(mask))) ||
        !IsMultipliedOnly(*bytes)) {
        return {};
    }
    fields.mask = llvm::cast<Instruction>(bytes)->getOperand(1);
    match::match(shifted, match::m_Freeze(match::m_Value(shifted)));
    if (!match::match(shifted,
                      match::m_LShr(match::m_Value(fields.words), match::m_Value(fields.shift)))) {
        return {};
    }
    // Four times the same byte, which has room for the longest shift.
    const APInt byte = mask->trunc(kByteBits);
    const llvm::KnownBits known = llvm::computeKnownBits(
        fields.shift, llvm::cast<Instruction>(bytes)->getModule()->getDataLayout());
    const bool fits = *mask == APInt::getSplat(mask->getBitWidth(), byte) &&
                      known.getMaxValue().ule(kByteBits - byte.getActiveBits());
    return fits ? std::optional(fields) : std::nullopt;
}

// The dot products that are added up to the last one, from the first one on.
struct Sum {
    llvm::SmallVector<llvm::IntrinsicInst*, 8> dots;
    llvm::SmallVector<Fields, 8> fields;
};

std::optional<Sum> SumOf(llvm::IntrinsicInst& last) {
    Sum sum;
    Value* value = &last;
    while (llvm::IntrinsicInst* dot = AsDot(value)) {
        const std::optional<Fields> fields = FieldsOf(dot->getArgOperand(1));
        if (!fields ||
            (!sum.fields.empty() && (!fields->IsLike(sum.fields[0]) || !dot->hasOneUse())) ||
            sum.dots.size() == kMostDots) {
            return {};
        }
        sum.dots.push_back(dot);
        sum.fields.push_back(*fields);
        value = dot->getArgOperand(0);
    }
    // One shift that is a number is an operation that others may share.
    const bool pays = sum.dots.size() >= kLeastDots && match::match(value, match::m_Zero()) &&
                      !llvm::isa<llvm::Constant>(sum.fields[0].shift);
    return pays ? std::optional(sum) : std::nullopt;
}

Value* PartOf(llvm::IRBuilder<>& b, const Fields& fields, Value* vector) {
    return fields.part ? b.CreateShuffleVector(vector, fields.part->getShuffleMask()) : vector;
}

void ShiftOnce(const Sum& sum) {
    llvm::IntrinsicInst& last = *sum.dots[0];
    const Fields& like = sum.fields[0];
    llvm::IRBuilder<> b(&last);
    // The mask of fields in place is computed where the distances are, which may be before a loop.
    if (auto* shift = llvm::dyn_cast<Instruction>(like.shift)) {
        b.SetInsertPoint(shift->getParent(), *shift->getInsertionPointAfterDef());
    } else {
        b.SetInsertPointPastAllocas(last.getFunction());
    }
    Value* mask = b.CreateShl(like.mask, like.shift);
    Value* total = llvm::Constant::getNullValue(last.getType());
    for (size_t i = sum.dots.size(); i-- > 0;) {
        const Fields& fields = sum.fields[i];
        // Beside the words, which other lanes' dot products take their parts of as well.
        b.SetInsertPoint(llvm::cast<Instruction>(fields.part ? fields.part->getOperand(0)
                                                             : sum.dots[i]->getArgOperand(1)));
        Value* in_place = b.CreateAnd(b.CreateFreeze(fields.words), mask);
        b.SetInsertPoint(&last);
        total =
            b.CreateIntrinsic(last.getType(), last.getIntrinsicID(),
                              {total, PartOf(b, fields, in_place), sum.dots[i]->getArgOperand(2)});
    }
    last.replaceAllUsesWith(b.CreateAShr(total, PartOf(b, like, like.shift)));
    llvm::RecursivelyDeleteTriviallyDeadInstructions(&last);
}

}  // namespace

llvm::PreservedAnalyses DotShiftsPass::run(llvm::Function& function,
                                           llvm::FunctionAnalysisManager&) {
    llvm::SmallVector<llvm::IntrinsicInst*, 16> ends;
    for (Instruction& inst : llvm::instructions(function)) {
        llvm::IntrinsicInst* dot = AsDot(&inst);
        const auto continues = [&](const llvm::Use& use) {
            return AsDot(use.getUser()) && use.getOperandNo() == 0;
        };
        if (dot && llvm::none_of(dot->uses(), continues)) {
            ends.push_back(dot);
        }
    }
    bool changed = false;
    for (llvm::IntrinsicInst* end : ends) {
        if (const std::optional<Sum> sum = SumOf(*end)) {
            ShiftOnce(*sum);
            changed = true;
        }
    }
    if (!changed) {
        return llvm::PreservedAnalyses::all();
    }
    llvm::PreservedAnalyses preserved;
    preserved.preserveSet<llvm::CFGAnalyses>();
    return preserved;
}

}  // namespace fornax::kernel

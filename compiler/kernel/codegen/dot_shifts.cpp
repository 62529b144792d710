#include "compiler/kernel/codegen/dot_shifts.h"

#include <optional>
#include <utility>

#include <llvm/ADT/STLExtras.h>
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

// One shift in place of another pays nothing. For each field.
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

// Fields of `words`, one a byte: shifted down by `shift`, up by `up`, and masked by `mask`.
struct Field {
    Value* words = nullptr;
    Value* shift = nullptr;
    unsigned up = 0;
    APInt mask;

    bool IsLike(const Field& other) const {
        return shift == other.shift && up == other.up && mask == other.mask;
    }
};

// The bytes of one or two fields, all of a vector or the part that `part` takes of it.
struct Bytes {
    llvm::SmallVector<Field, 2> fields;
    llvm::ShuffleVectorInst* part = nullptr;
    Instruction* vector = nullptr;

    bool IsLike(const Bytes& other) const {
        return !part == !other.part &&
               (!part || (part->getType() == other.part->getType() &&
                          part->getShuffleMask() == other.part->getShuffleMask())) &&
               llvm::equal(fields, other.fields,
                           [](const Field& a, const Field& b) { return a.IsLike(b); });
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

Value* WithoutFreeze(Value* value) {
    match::match(value, match::m_Freeze(match::m_Value(value)));
    return value;
}

std::optional<Field> FieldOf(Value* value) {
    Field field;
    Value* shifted = nullptr;
    const APInt* mask = nullptr;
    const APInt* up = nullptr;
    if (!match::match(value, match::m_And(match::m_Value(shifted), match::m_APInt(mask)))) {
        return {};
    }
    shifted = WithoutFreeze(shifted);
    if (match::match(shifted, match::m_Shl(match::m_Value(shifted), match::m_APInt(up)))) {
        field.up = static_cast<unsigned>(up->getLimitedValue(kByteBits));
        shifted = WithoutFreeze(shifted);
    }
    if (!match::match(shifted,
                      match::m_LShr(match::m_Value(field.words), match::m_Value(field.shift)))) {
        return {};
    }
    // Four times the same byte, which has room for the longest shift.
    const APInt byte = mask->trunc(kByteBits);
    const llvm::KnownBits known = llvm::computeKnownBits(
        field.shift, llvm::cast<Instruction>(value)->getModule()->getDataLayout());
    if (*mask != APInt::getSplat(mask->getBitWidth(), byte) || byte.isZero() ||
        field.up > byte.countr_zero() ||
        known.getMaxValue().ugt(kByteBits - (byte.getActiveBits() - field.up)) ||
        llvm::isa<llvm::Constant>(field.shift)) {
        return {};
    }
    field.mask = mask->lshr(field.up);
    return field;
}

std::optional<Bytes> BytesOf(Value* value) {
    Bytes bytes;
    if (auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(value);
        shuffle && llvm::isa<llvm::UndefValue>(shuffle->getOperand(1))) {
        bytes.part = shuffle;
        value = shuffle->getOperand(0);
    }
    bytes.vector = llvm::dyn_cast<Instruction>(value);
    if (!bytes.vector || !IsMultipliedOnly(*value)) {
        return {};
    }
    Value *first = value, *second = nullptr;
    match::match(value, match::m_Or(match::m_OneUse(match::m_Value(first)),
                                    match::m_OneUse(match::m_Value(second))));
    for (Value* part : {first, second}) {
        const std::optional<Field> field = part ? FieldOf(part) : std::nullopt;
        if (part && !field) {
            return {};
        }
        if (part) {
            bytes.fields.push_back(*field);
        }
    }
    const auto in_byte = [](const Field& field) { return field.mask.shl(field.up); };
    if (second && in_byte(bytes.fields[0]).intersects(in_byte(bytes.fields[1]))) {
        return {};
    }
    return bytes;
}

// The dot products that are added up, from the last one back to the first one.
struct Sum {
    llvm::SmallVector<llvm::IntrinsicInst*, 8> dots;
    llvm::SmallVector<Bytes, 8> bytes;
};

std::optional<Sum> SumOf(llvm::IntrinsicInst& last) {
    Sum sum;
    Value* value = &last;
    while (llvm::IntrinsicInst* dot = AsDot(value)) {
        std::optional<Bytes> bytes = BytesOf(dot->getArgOperand(1));
        if (!bytes || (!sum.dots.empty() && (!bytes->IsLike(sum.bytes[0]) || !dot->hasOneUse())) ||
            sum.dots.size() == kMostDots) {
            return {};
        }
        sum.dots.push_back(dot);
        sum.bytes.push_back(std::move(*bytes));
        value = dot->getArgOperand(0);
    }
    const bool pays = match::match(value, match::m_Zero()) &&
                      sum.dots.size() >= kLeastDots * sum.bytes[0].fields.size();
    return pays ? std::optional(std::move(sum)) : std::nullopt;
}

Value* PartOf(llvm::IRBuilder<>& b, const Bytes& bytes, Value* vector) {
    return bytes.part ? b.CreateShuffleVector(vector, bytes.part->getShuffleMask()) : vector;
}

// The sum of one of the fields.
Value* SumOfField(llvm::IRBuilder<>& b, const Sum& sum, size_t index) {
    llvm::IntrinsicInst& last = *sum.dots[0];
    const Field& like = sum.bytes[0].fields[index];
    // The mask of fields in place is computed where the distances are, which may be before a loop.
    if (auto* shift = llvm::dyn_cast<Instruction>(like.shift)) {
        b.SetInsertPoint(shift->getParent(), *shift->getInsertionPointAfterDef());
    } else {
        b.SetInsertPointPastAllocas(last.getFunction());
    }
    Value* mask = b.CreateShl(llvm::ConstantInt::get(like.shift->getType(), like.mask), like.shift);
    Value* total = llvm::Constant::getNullValue(last.getType());
    for (size_t i = sum.dots.size(); i-- > 0;) {
        // Beside the words, which other lanes' dot products take their parts of as well.
        b.SetInsertPoint(sum.bytes[i].vector);
        Value* in_place = b.CreateAnd(b.CreateFreeze(sum.bytes[i].fields[index].words), mask);
        b.SetInsertPoint(&last);
        total = b.CreateIntrinsic(
            last.getType(), last.getIntrinsicID(),
            {total, PartOf(b, sum.bytes[i], in_place), sum.dots[i]->getArgOperand(2)});
    }
    Value* shifted = b.CreateAShr(total, PartOf(b, sum.bytes[0], like.shift));
    return like.up == 0 ? shifted : b.CreateShl(shifted, like.up);
}

void ShiftOnce(const Sum& sum) {
    llvm::IntrinsicInst& last = *sum.dots[0];
    llvm::IRBuilder<> b(&last);
    Value* total = SumOfField(b, sum, 0);
    for (size_t i = 1; i < sum.bytes[0].fields.size(); ++i) {
        total = b.CreateAdd(total, SumOfField(b, sum, i));
    }
    last.replaceAllUsesWith(total);
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

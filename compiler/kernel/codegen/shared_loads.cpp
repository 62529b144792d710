#include "compiler/kernel/codegen/shared_loads.h"

#include <array>
#include <optional>
#include <utility>

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Local.h>

#include "compiler/kernel/codegen/target_machine.h"

namespace fornax::kernel {

using llvm::Instruction;
using llvm::Value;
namespace match = llvm::PatternMatch;

namespace {

constexpr unsigned kHalfBits = 16;
constexpr unsigned kMostSplats = 4;  // elements that are loaded one by one

unsigned Width(const Value* vector) {
    return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}

// --- Halves of words -----------------------------------------------------------------------------

// Words of which the lower or the upper halves are what is extended.
struct HalfOf {
    Value* words = nullptr;
    bool upper = false;
};

std::optional<HalfOf> FindHalf(const Instruction& inst) {
    Value* bits = nullptr;
    Value* words = nullptr;
    if (!llvm::isa<llvm::FPExtInst>(inst) || !inst.getType()->getScalarType()->isFloatTy() ||
        !match::match(inst.getOperand(0), match::m_BitCast(match::m_Trunc(match::m_Value(bits)))) ||
        !inst.getType()->isVectorTy() || !bits->getType()->isVectorTy() ||
        !inst.getOperand(0)->getType()->getScalarType()->isHalfTy() ||
        !bits->getType()->getScalarType()->isIntegerTy(32) || Width(bits) != Width(&inst)) {
        return {};
    }
    const bool upper =
        match::match(bits, match::m_LShr(match::m_Value(words), match::m_SpecificInt(kHalfBits)));
    return HalfOf{upper ? words : bits, upper};
}

using Halves = std::array<llvm::SmallVector<Instruction*, 1>, 2>;  // lower, upper

// `parts`: the shuffles that part them again.
void ExtendTogether(Value& words,
                    const Halves& halves,
                    llvm::SmallVectorImpl<llvm::WeakTrackingVH>& parts) {
    Instruction* first = halves[0][0]->comesBefore(halves[1][0]) ? halves[0][0] : halves[1][0];
    llvm::IRBuilder<> b(first);
    const unsigned width = Width(&words);
    Value* all =
        b.CreateFPExt(b.CreateBitCast(&words, llvm::FixedVectorType::get(b.getHalfTy(), 2 * width)),
                      llvm::FixedVectorType::get(b.getFloatTy(), 2 * width));
    for (size_t upper = 0; upper < 2; ++upper) {
        llvm::SmallVector<int, 8> mask;
        for (unsigned i = 0; i < width; ++i) {
            mask.push_back(static_cast<int>(2 * i + upper));
        }
        Value* part = b.CreateShuffleVector(all, mask);
        parts.push_back(part);
        for (Instruction* half : halves[upper]) {
            half->replaceAllUsesWith(part);
        }
    }
    for (Instruction* half : llvm::concat<Instruction* const>(halves[0], halves[1])) {
        llvm::RecursivelyDeleteTriviallyDeadInstructions(half);
    }
}

// A shuffle of one vector, to which the mask leads directly.
llvm::ShuffleVectorInst* OneSource(Value* value) {
    auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(value);
    return shuffle && llvm::isa<llvm::UndefValue>(shuffle->getOperand(1)) ? shuffle : nullptr;
}

// What takes elements of one or two of the parts takes them of what is parted.
void TakeFromWhole(llvm::ShuffleVectorInst& shuffle) {
    llvm::ShuffleVectorInst* first = OneSource(shuffle.getOperand(0));
    llvm::ShuffleVectorInst* second = OneSource(shuffle.getOperand(1));
    const bool alone = llvm::isa<llvm::UndefValue>(shuffle.getOperand(1));
    if (!first || (!second && !alone) ||
        (second && first->getOperand(0)->getType() != second->getOperand(0)->getType())) {
        return;
    }
    const auto width = static_cast<int>(Width(first));
    const auto whole = static_cast<int>(Width(first->getOperand(0)));
    llvm::SmallVector<int, 16> mask;
    for (int from : shuffle.getShuffleMask()) {
        if (from >= width) {
            from = second ? second->getMaskValue(static_cast<unsigned>(from - width)) : -1;
            mask.push_back(from < 0 ? -1 : whole + from);
        } else {
            mask.push_back(from < 0 ? -1 : first->getMaskValue(static_cast<unsigned>(from)));
        }
    }
    llvm::IRBuilder<> b(&shuffle);
    shuffle.replaceAllUsesWith(b.CreateShuffleVector(
        first->getOperand(0),
        second ? second->getOperand(0) : llvm::PoisonValue::get(first->getOperand(0)->getType()),
        mask));
    llvm::RecursivelyDeleteTriviallyDeadInstructions(&shuffle);
}

bool PairHalves(llvm::BasicBlock& block, unsigned most_words) {
    llvm::SmallMapVector<Value*, Halves, 8> found;
    for (Instruction& inst : block) {
        const std::optional<HalfOf> half = FindHalf(inst);
        if (half && Width(&inst) <= most_words) {
            found[half->words][half->upper ? 1 : 0].push_back(&inst);
        }
    }
    llvm::SmallVector<llvm::WeakTrackingVH, 8> parts;
    for (const auto& [words, halves] : found) {
        if (!halves[0].empty() && !halves[1].empty()) {
            ExtendTogether(*words, halves, parts);
        }
    }
    llvm::SmallSetVector<llvm::ShuffleVectorInst*, 8> shuffles;
    for (const llvm::WeakTrackingVH& part : parts) {
        for (llvm::User* user : part->users()) {
            if (auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(user)) {
                shuffles.insert(shuffle);
            }
        }
    }
    for (llvm::ShuffleVectorInst* shuffle : shuffles) {
        TakeFromWhole(*shuffle);
    }
    return !parts.empty();
}

// --- Elements for all lanes ----------------------------------------------------------------------

// The element that all lanes get.
std::optional<unsigned> SplatElement(const llvm::User* user, const Value* vector) {
    const auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(user);
    if (!shuffle || shuffle->getOperand(0) != vector || shuffle->getOperand(1) == vector) {
        return {};
    }
    const llvm::ArrayRef<int> mask = shuffle->getShuffleMask();
    const bool same = mask[0] >= 0 && static_cast<unsigned>(mask[0]) < Width(vector) &&
                      mask.size() > Width(vector) && llvm::all_equal(mask);
    return same ? std::optional(static_cast<unsigned>(mask[0])) : std::nullopt;
}

bool LoadSplats(llvm::LoadInst& load) {
    const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(load.getType());
    if (!type || !load.isSimple() || load.use_empty() || type->getNumElements() > kMostSplats ||
        type->getScalarSizeInBits() % 32 != 0 ||
        llvm::any_of(load.users(), [&](const llvm::User* user) {
            return !SplatElement(user, &load).has_value();
        })) {
        return false;
    }
    llvm::IRBuilder<> b(&load);
    llvm::Type* element = type->getElementType();
    const uint64_t bytes = element->getScalarSizeInBits() / 8;
    std::array<Value*, kMostSplats> loaded = {};
    for (llvm::User* user : llvm::make_early_inc_range(load.users())) {
        const unsigned index = *SplatElement(user, &load);
        if (!loaded[index]) {
            Value* from = load.getPointerOperand();
            if (index != 0) {
                from = b.CreateConstGEP1_64(b.getInt8Ty(), from, index * bytes);
            }
            llvm::LoadInst* one = b.CreateAlignedLoad(
                element, from, llvm::commonAlignment(load.getAlign(), index * bytes));
            one->copyMetadata(load,
                              {llvm::LLVMContext::MD_alias_scope, llvm::LLVMContext::MD_noalias,
                               llvm::LLVMContext::MD_invariant_load});
            loaded[index] = one;
        }
        auto* shuffle = llvm::cast<Instruction>(user);
        llvm::IRBuilder<> at(shuffle);
        shuffle->replaceAllUsesWith(at.CreateVectorSplat(Width(shuffle), loaded[index]));
        shuffle->eraseFromParent();
    }
    load.eraseFromParent();
    return true;
}

llvm::PreservedAnalyses Preserved(bool changed) {
    if (!changed) {
        return llvm::PreservedAnalyses::all();
    }
    llvm::PreservedAnalyses preserved;
    preserved.preserveSet<llvm::CFGAnalyses>();
    return preserved;
}

}  // namespace

llvm::PreservedAnalyses PairedHalvesPass::run(llvm::Function& function,
                                              llvm::FunctionAnalysisManager&) {
    const uint64_t vector_bits = FlagOf(*function.getParent(), kVectorBitsFlag);
    bool changed = false;
    for (llvm::BasicBlock& block : function) {
        changed |= PairHalves(block, static_cast<unsigned>(vector_bits / 64));
    }
    return Preserved(changed);
}

llvm::PreservedAnalyses SplatLoadsPass::run(llvm::Function& function,
                                            llvm::FunctionAnalysisManager&) {
    llvm::SmallVector<llvm::LoadInst*, 32> loads;  // the shuffles behind them are replaced, too
    for (Instruction& inst : llvm::instructions(function)) {
        if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&inst)) {
            loads.push_back(load);
        }
    }
    bool changed = false;
    for (llvm::LoadInst* load : loads) {
        changed |= LoadSplats(*load);
    }
    return Preserved(changed);
}

}  // namespace fornax::kernel

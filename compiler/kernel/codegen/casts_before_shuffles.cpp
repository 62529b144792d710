#include "compiler/kernel/codegen/casts_before_shuffles.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Local.h>

namespace fornax::kernel {

using llvm::Instruction;
using llvm::ShuffleVectorInst;
using llvm::Value;
namespace match = llvm::PatternMatch;

namespace {

unsigned Width(const Value* vector) {
    return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}

// Takes one vector, element by element.
bool IsCast(const Instruction& inst) {
    switch (inst.getOpcode()) {
        case Instruction::Trunc:
        case Instruction::ZExt:
        case Instruction::SExt:
        case Instruction::FPExt:
        case Instruction::FPTrunc:
        case Instruction::UIToFP:
        case Instruction::SIToFP:
            break;
        case Instruction::BitCast:
            if (!inst.getOperand(0)->getType()->isVectorTy() || !inst.getType()->isVectorTy() ||
                Width(&inst) != Width(inst.getOperand(0))) {
                return false;
            }
            break;
        case Instruction::LShr:
        case Instruction::Shl: {
            const llvm::APInt* bits = nullptr;
            if (!match::match(inst.getOperand(1), match::m_APInt(bits))) {
                return false;
            }
            break;
        }
        default:
            return false;
    }
    return llvm::isa<llvm::FixedVectorType>(inst.getType());
}

// The shuffle has few sources, or joins two that have.
bool Spreads(Value* vector) {
    auto* shuffle = llvm::dyn_cast<ShuffleVectorInst>(vector);
    if (!shuffle) {
        return false;
    }
    Value* first = shuffle->getOperand(0);
    Value* second = shuffle->getOperand(1);
    const bool one = llvm::isa<llvm::UndefValue>(second);
    if ((one ? 1 : 2) * 2 * Width(first) <= Width(shuffle)) {
        return true;
    }
    return !one && shuffle->isConcat() && Spreads(first) && Spreads(second);
}

// The cast, or shift, of another vector, or of a scalar.
Value* CastOf(llvm::IRBuilder<>& b, const Instruction& cast, Value* vector) {
    llvm::Type* type = vector->getType()->getWithNewType(cast.getType()->getScalarType());
    if (llvm::isa<llvm::PoisonValue>(vector)) {
        return llvm::PoisonValue::get(type);
    }
    Instruction* copy = cast.clone();
    copy->mutateType(type);
    copy->setOperand(0, vector);
    if (cast.isShift()) {
        const llvm::APInt* bits = nullptr;
        match::match(cast.getOperand(1), match::m_APInt(bits));
        copy->setOperand(1, llvm::ConstantInt::get(type, *bits));
    }
    b.Insert(copy);
    return copy;
}

Value* Spread(llvm::IRBuilder<>& b, const Instruction& cast, ShuffleVectorInst& shuffle) {
    llvm::SmallVector<Value*, 2> sources;
    for (Value* source : shuffle.operands()) {
        sources.push_back(shuffle.isConcat() && Spreads(source)
                              ? Spread(b, cast, *llvm::cast<ShuffleVectorInst>(source))
                              : CastOf(b, cast, source));
    }
    return b.CreateShuffleVector(sources[0], sources[1], shuffle.getShuffleMask());
}

// Two blocks lead to the value. (One block may twice, if it ends in a switch: then both values have
// to be the same.)
bool HasTwoWays(const llvm::PHINode& phi) {
    return phi.getNumIncomingValues() == 2 && phi.getIncomingBlock(0) != phi.getIncomingBlock(1);
}

// One of two ways to a value spreads elements, as the usual way of an access does. Null if that is
// not the case.
llvm::PHINode* SpreadsOnOneWay(Value* vector) {
    auto* phi = llvm::dyn_cast<llvm::PHINode>(vector);
    const bool found = phi && HasTwoWays(*phi) &&
                       llvm::any_of(phi->incoming_values(),
                                    [](const llvm::Use& way) { return Spreads(way.get()); });
    return found ? phi : nullptr;
}

// The cast, on either way.
Value* CastWays(const Instruction& cast, llvm::PHINode& phi) {
    llvm::IRBuilder<> b(&phi);
    llvm::PHINode* result = b.CreatePHI(cast.getType(), 2);
    for (unsigned i = 0; i < 2; ++i) {
        Value* way = phi.getIncomingValue(i);
        b.SetInsertPoint(phi.getIncomingBlock(i)->getTerminator());
        result->addIncoming(Spreads(way) ? Spread(b, cast, *llvm::cast<ShuffleVectorInst>(way))
                                         : CastOf(b, cast, way),
                            phi.getIncomingBlock(i));
    }
    return result;
}

// Extensions of what one of two ways loads: loads extend without another instruction. Casts that
// change no bits may stand between, because halves are loaded as integers. None unless all uses are
// such extensions, and alike.
llvm::SmallVector<Instruction*, 4> ExtensionsOf(llvm::PHINode& phi) {
    const auto loads = [](const llvm::Use& way) {
        const auto* load = llvm::dyn_cast<llvm::LoadInst>(way.get());
        return load && load->hasOneUse();
    };
    if (!HasTwoWays(phi) || llvm::none_of(phi.incoming_values(), loads)) {
        return {};
    }
    llvm::SmallVector<Instruction*, 4> users;
    for (llvm::User* user : phi.users()) {
        auto* cast = llvm::cast<Instruction>(user);
        if (llvm::isa<llvm::BitCastInst>(cast) && IsCast(*cast) && cast->hasOneUse()) {
            cast = llvm::cast<Instruction>(*cast->user_begin());
        }
        if (!llvm::isa<llvm::FPExtInst, llvm::ZExtInst, llvm::SExtInst>(cast)) {
            return {};
        }
        users.push_back(cast);
    }
    const auto is_first = [&](const Instruction* user) {
        return user->getOpcode() == users[0]->getOpcode() &&
               user->getType() == users[0]->getType() &&
               user->getOperand(0)->getType() == users[0]->getOperand(0)->getType();
    };
    return llvm::all_of(users, is_first) ? users : llvm::SmallVector<Instruction*, 4>();
}

// One extension on either way for all of them, which is defined where any of them is.
Value* ExtendWays(llvm::ArrayRef<Instruction*> extensions, llvm::PHINode& phi) {
    Instruction& extension = *extensions[0];
    for (const Instruction* other : extensions) {
        extension.andIRFlags(other);
    }
    llvm::IRBuilder<> b(&phi);
    llvm::PHINode* result = b.CreatePHI(extension.getType(), 2);
    for (unsigned i = 0; i < 2; ++i) {
        b.SetInsertPoint(phi.getIncomingBlock(i)->getTerminator());
        Value* way = b.CreateBitCast(phi.getIncomingValue(i), extension.getOperand(0)->getType());
        result->addIncoming(CastOf(b, extension, way), phi.getIncomingBlock(i));
    }
    return result;
}

bool ExtendLoads(llvm::BasicBlock& block) {
    bool changed = false;
    for (llvm::PHINode& phi : llvm::make_early_inc_range(block.phis())) {
        const llvm::SmallVector<Instruction*, 4> extensions = ExtensionsOf(phi);
        if (extensions.empty()) {
            continue;
        }
        Value* extended = ExtendWays(extensions, phi);
        for (Instruction* extension : extensions) {
            extension->replaceAllUsesWith(extended);
            llvm::RecursivelyDeleteTriviallyDeadInstructions(extension);
        }
        changed = true;
    }
    return changed;
}

}  // namespace

llvm::PreservedAnalyses CastsBeforeShufflesPass::run(llvm::Function& function,
                                                     llvm::FunctionAnalysisManager&) {
    bool changed = false;
    for (llvm::BasicBlock& block : function) {
        changed |= ExtendLoads(block);
        for (Instruction& inst : llvm::make_early_inc_range(block)) {
            if (!IsCast(inst)) {
                continue;
            }
            Value* from = inst.getOperand(0);
            llvm::PHINode* ways = SpreadsOnOneWay(from);
            if (!ways && !Spreads(from)) {
                continue;
            }
            llvm::IRBuilder<> b(&inst);
            inst.replaceAllUsesWith(ways ? CastWays(inst, *ways)
                                         : Spread(b, inst, *llvm::cast<ShuffleVectorInst>(from)));
            inst.eraseFromParent();
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

#include "compiler/kernel/codegen/casts_before_shuffles.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

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

// The cast, or shift, of another vector.
Value* CastOf(llvm::IRBuilder<>& b, const Instruction& cast, Value* vector) {
    llvm::Type* element = cast.getType()->getScalarType();
    auto* type = llvm::FixedVectorType::get(element, Width(vector));
    if (llvm::isa<llvm::UndefValue>(vector)) {
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

// One of two ways to a value spreads elements, as the usual way of an access does. Null if that is
// not the case.
llvm::PHINode* SpreadsOnOneWay(Value* vector) {
    auto* phi = llvm::dyn_cast<llvm::PHINode>(vector);
    const bool found = phi && phi->getNumIncomingValues() == 2 &&
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

}  // namespace

llvm::PreservedAnalyses CastsBeforeShufflesPass::run(llvm::Function& function,
                                                     llvm::FunctionAnalysisManager&) {
    bool changed = false;
    for (llvm::BasicBlock& block : function) {
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

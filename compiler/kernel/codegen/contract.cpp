#include "compiler/kernel/codegen/contract.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>
#include <llvm/Transforms/Utils/Local.h>

#include "compiler/kernel/codegen/target_machine.h"

namespace fornax::kernel {

namespace {

using llvm::Value;

// A product that only this user sees, perhaps negated.
struct Product {
    Value* a = nullptr;
    Value* b = nullptr;
    bool negated = false;
};

Product ProductOf(Value* value) {
    Product product;
    auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
    if (instruction && instruction->getOpcode() == llvm::Instruction::FNeg &&
        instruction->hasOneUse()) {
        product.negated = true;
        instruction = llvm::dyn_cast<llvm::Instruction>(instruction->getOperand(0));
    }
    if (instruction && instruction->getOpcode() == llvm::Instruction::FMul &&
        instruction->hasOneUse() && instruction->hasAllowContract()) {
        product.a = instruction->getOperand(0);
        product.b = instruction->getOperand(1);
    }
    return product;
}

// True if it was replaced.
bool Contract(llvm::Instruction& sum) {
    const bool subtract = sum.getOpcode() == llvm::Instruction::FSub;
    for (unsigned side = 0; side < 2; ++side) {
        const Product product = ProductOf(sum.getOperand(side));
        if (!product.a) {
            continue;
        }
        llvm::IRBuilder<> builder(&sum);
        builder.setFastMathFlags(sum.getFastMathFlags());
        Value* addend = sum.getOperand(1 - side);
        // a * b - c, or c - a * b.
        if (subtract && side == 0) {
            addend = builder.CreateFNeg(addend);
        }
        const bool negate = product.negated != (subtract && side == 1);
        Value* a = negate ? builder.CreateFNeg(product.a) : product.a;
        Value* fused =
            builder.CreateIntrinsic(llvm::Intrinsic::fma, {sum.getType()}, {a, product.b, addend});
        sum.replaceAllUsesWith(fused);
        return true;
    }
    return false;
}

}  // namespace

void ContractMultiplyAdds(llvm::Module& module) {
    // Without the instruction an explicit multiply-add would be a call.
    if (FlagOf(module, kVectorBitsFlag) < 256) {
        return;
    }
    const bool half = FlagOf(module, kNativeHalfFlag) != 0;
    for (llvm::Function& function : module) {
        llvm::SmallVector<llvm::Instruction*, 32> sums;
        for (llvm::Instruction& instruction : llvm::instructions(function)) {
            const unsigned opcode = instruction.getOpcode();
            if ((opcode != llvm::Instruction::FAdd && opcode != llvm::Instruction::FSub) ||
                !instruction.hasAllowContract()) {
                continue;
            }
            llvm::Type* scalar = instruction.getType()->getScalarType();
            if (scalar->isFloatTy() || scalar->isDoubleTy() || (half && scalar->isHalfTy())) {
                sums.push_back(&instruction);
            }
        }
        for (llvm::Instruction* sum : sums) {
            if (Contract(*sum)) {
                llvm::RecursivelyDeleteTriviallyDeadInstructions(sum);
            }
        }
    }
}

}  // namespace fornax::kernel

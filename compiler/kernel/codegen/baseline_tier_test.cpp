// What is done to LLVM IR for the code generator of the baseline tier.
#include <gtest/gtest.h>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "compiler/kernel/codegen/baseline_constants.h"
#include "compiler/kernel/codegen/baseline_split.h"

namespace fornax::kernel {
namespace {

constexpr unsigned kLanes = 32;
constexpr unsigned kPartLanes = 8;

// void(ptr in, ptr out) with vectors of kLanes words.
class BaselineTier : public ::testing::Test {
  protected:
    BaselineTier() {
        auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getPtrTy()}, false);
        function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "f", module_);
        b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function_));
        words_ = llvm::FixedVectorType::get(b_.getInt32Ty(), kLanes);
        in_ = b_.CreateAlignedLoad(words_, function_->getArg(0), llvm::Align(64));
    }
    void Return(llvm::Value* value) {
        b_.CreateAlignedStore(value, function_->getArg(1), llvm::Align(64));
        b_.CreateRetVoid();
    }
    bool Valid() const { return !llvm::verifyFunction(*function_, &llvm::errs()); }
    // Instructions with a result or an operand of more than kPartLanes lanes.
    unsigned CountWide() const {
        auto wide = [](const llvm::Value* value) {
            const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
            return type && type->getNumElements() > kPartLanes;
        };
        unsigned count = 0;
        for (const llvm::Instruction& instruction : llvm::instructions(*function_)) {
            bool is_wide = wide(&instruction);
            for (const llvm::Value* operand : instruction.operands()) {
                is_wide |= wide(operand);
            }
            count += is_wide;
        }
        return count;
    }

    llvm::LLVMContext context_;
    llvm::Module module_{"baseline", context_};
    llvm::IRBuilder<> b_{context_};
    llvm::Function* function_ = nullptr;
    llvm::FixedVectorType* words_ = nullptr;
    llvm::Value* in_ = nullptr;
};

TEST_F(BaselineTier, WhatLanesDoByThemselvesIsSplit) {
    llvm::Value* splat = b_.CreateVectorSplat(kLanes, b_.getInt32(7));
    llvm::Value* less = b_.CreateICmpULT(in_, splat);
    llvm::Value* sum = b_.CreateAdd(in_, b_.CreateZExt(less, words_));
    llvm::Value* narrow = b_.CreateTrunc(sum, words_->getWithNewType(b_.getInt16Ty()));
    llvm::Value* least =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b_.CreateSExt(narrow, words_), in_);
    // All lanes' bits in one word.
    llvm::Value* bits = b_.CreateBitCast(less, b_.getInt32Ty());
    Return(b_.CreateSelect(b_.CreateICmpEQ(bits, b_.getInt32(0)), least, in_));
    ASSERT_TRUE(Valid());
    SplitVectors(*function_, kLanes, kPartLanes);
    EXPECT_TRUE(Valid());
    EXPECT_EQ(CountWide(), 0u);
}

TEST_F(BaselineTier, LoopsCarryParts) {
    llvm::BasicBlock* entry = b_.GetInsertBlock();
    auto* loop = llvm::BasicBlock::Create(context_, "loop", function_);
    auto* end = llvm::BasicBlock::Create(context_, "end", function_);
    b_.CreateBr(loop);
    b_.SetInsertPoint(loop);
    auto* carried = b_.CreatePHI(words_, 2);
    llvm::Value* next = b_.CreateMul(carried, in_);
    carried->addIncoming(in_, entry);
    carried->addIncoming(next, loop);
    llvm::Value* first = b_.CreateExtractElement(next, uint64_t{9});
    b_.CreateCondBr(b_.CreateICmpEQ(first, b_.getInt32(0)), end, loop);
    b_.SetInsertPoint(end);
    Return(next);
    SplitVectors(*function_, kLanes, kPartLanes);
    EXPECT_TRUE(Valid());
    EXPECT_EQ(CountWide(), 0u);
}

TEST_F(BaselineTier, WhatIsNotSplitHasWholeVectors) {
    llvm::FunctionCallee callee =
        module_.getOrInsertFunction("whole", llvm::FunctionType::get(words_, {words_}, false));
    llvm::Value* called = b_.CreateCall(callee, {b_.CreateAdd(in_, in_)});
    Return(b_.CreateSub(called, in_));
    SplitVectors(*function_, kLanes, kPartLanes);
    EXPECT_TRUE(Valid());
    for (const llvm::Instruction& instruction : llvm::instructions(*function_)) {
        if (instruction.isBinaryOp()) {
            EXPECT_EQ(llvm::cast<llvm::FixedVectorType>(instruction.getType())->getNumElements(),
                      kPartLanes);
        }
    }
}

TEST_F(BaselineTier, ConstantsAreLoadedOncePerBlock) {
    llvm::Constant* constant = llvm::ConstantInt::get(words_, 0x01020304);
    llvm::Value* masked = b_.CreateAnd(in_, constant);
    llvm::Value* shifted = b_.CreateLShr(masked, llvm::ConstantInt::get(words_, 3));
    Return(b_.CreateXor(shifted, constant));
    LoadVectorConstants(module_);
    EXPECT_TRUE(Valid());
    unsigned loads = 0;
    for (const llvm::Instruction& instruction : llvm::instructions(*function_)) {
        if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
            loads += load != in_;
        }
        const bool logic = instruction.getOpcode() == llvm::Instruction::And ||
                           instruction.getOpcode() == llvm::Instruction::Xor;
        if (logic) {
            EXPECT_FALSE(llvm::isa<llvm::Constant>(instruction.getOperand(1)));
        }
        // A shift by a constant is one instruction.
        if (instruction.getOpcode() == llvm::Instruction::LShr) {
            EXPECT_TRUE(llvm::isa<llvm::Constant>(instruction.getOperand(1)));
        }
    }
    EXPECT_EQ(loads, 1u);
    const llvm::GlobalVariable* table = nullptr;
    for (const llvm::GlobalVariable& global : module_.globals()) {
        table = &global;
    }
    ASSERT_NE(table, nullptr);
    const auto* bytes = llvm::dyn_cast<llvm::ConstantDataArray>(table->getInitializer());
    ASSERT_NE(bytes, nullptr);
    ASSERT_EQ(bytes->getNumElements(), kLanes * 4);
    EXPECT_EQ(bytes->getElementAsInteger(4), 4u);
    EXPECT_EQ(bytes->getElementAsInteger(7), 1u);
}

}  // namespace
}  // namespace fornax::kernel

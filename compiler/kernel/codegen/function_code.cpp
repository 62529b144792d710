#include "compiler/kernel/codegen/function_code.h"

#include <llvm/IR/MDBuilder.h>

#include <cassert>

namespace fornax::kernel {

using llvm::BasicBlock;
using llvm::Value;

namespace {

uint32_t Invocations(const ir::Kernel& kernel) {
    return kernel.workgroup_size[0] * kernel.workgroup_size[1] * kernel.workgroup_size[2];
}

}  // namespace

FunctionCode::FunctionCode(const ir::Kernel& kernel,
                           const LaneAnalysis& patterns,
                           ExplainRecorder& recorder,
                           const EmitOptions& options,
                           llvm::Module& module)
    : kernel(kernel),
      patterns(patterns),
      recorder(recorder),
      module(module),
      context(module.getContext()),
      builder(context),
      vector_bits(options.vector_bits),
      compact(options.compact),
      invocations(Invocations(kernel) * patterns.map().workgroups),
      lanes(patterns.lanes()),
      subgroups((invocations + lanes - 1) / lanes) {
    // Fused multiply-add wherever the shader does not forbid it.
    llvm::FastMathFlags flags;
    flags.setAllowContract(true);
    builder.setFastMathFlags(flags);
}

void FunctionCode::UseLaneAnalysis(const LaneAnalysis& used) {
    patterns = CurrentLaneAnalysis(used);
    lanes = used.lanes();
    subgroups = (invocations + lanes - 1) / lanes;
}

llvm::AllocaInst* FunctionCode::NewAlloca(llvm::Type* type, const char* name) {
    llvm::IRBuilder<> at(entry, entry->begin());
    return at.CreateAlloca(type, nullptr, name);
}

llvm::AllocaInst* FunctionCode::NewSlot(llvm::Type* type, const char* name) {
    llvm::AllocaInst* slot = NewAlloca(type, name);
    builder.CreateStore(llvm::UndefValue::get(type), slot);
    return slot;
}

BasicBlock* FunctionCode::NewBlock(const char* name) {
    return BasicBlock::Create(context, name, function);
}

void FunctionCode::BranchTo(BasicBlock* block) {
    if (!Terminated()) {
        builder.CreateBr(block);
    }
}

void FunctionCode::EmitMaybe(Value* condition,
                             BasicBlock* then,
                             BasicBlock* otherwise,
                             bool likely) {
    llvm::MDBuilder metadata(context);
    builder.CreateCondBr(
        condition, then, otherwise,
        likely ? metadata.createBranchWeights(2000, 1) : metadata.createBranchWeights(1, 1));
}

uint32_t FunctionCode::AllocateScratch(uint64_t bytes) {
    uint64_t offset = scratch_bytes;
    scratch_bytes = (scratch_bytes + bytes + 63) & ~uint64_t{63};
    return offset > kMaxScratchBytes ? 0 : static_cast<uint32_t>(offset);
}

Construct& FunctionCode::FindConstruct(ir::InstId id) {
    for (Construct& construct : constructs) {
        if (construct.inst == id) {
            return construct;
        }
    }
    assert(false && "an exit leaves a construct that does not enclose it");
    return constructs.front();
}

llvm::Type* FunctionCode::VectorOf(llvm::Type* scalar) const {
    return lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, lanes);
}

Value* FunctionCode::Splat(Value* scalar) {
    return lanes == 1 ? scalar : builder.CreateVectorSplat(lanes, scalar);
}

llvm::Constant* FunctionCode::LaneConstants(llvm::Type* scalar,
                                            llvm::ArrayRef<int64_t> values) const {
    if (lanes == 1) {
        return llvm::ConstantInt::getSigned(scalar, values[0]);
    }
    llvm::SmallVector<llvm::Constant*, 64> constants;
    for (int64_t value : values) {
        constants.push_back(llvm::ConstantInt::get(scalar, static_cast<uint64_t>(value), true));
    }
    return llvm::ConstantVector::get(constants);
}

Value* FunctionCode::Mask() {
    if (mask) {
        return mask;
    }
    return llvm::Constant::getAllOnesValue(VectorOf(builder.getInt1Ty()));
}

Value* FunctionCode::MaskBits(Value* mask) {
    return builder.CreateBitCast(mask, builder.getIntNTy(lanes));
}

Value* FunctionCode::Any(Value* mask) {
    if (lanes == 1) {
        return mask;
    }
    Value* bits = MaskBits(mask);
    return builder.CreateICmpNE(bits, llvm::ConstantInt::get(bits->getType(), 0));
}

Value* FunctionCode::AllActive() {
    Value* bits = MaskBits(mask);
    return builder.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType()));
}

Value* FunctionCode::FirstActive() {
    if (!mask || lanes == 1) {
        return builder.getInt32(0);
    }
    // With no lane active the count is the width: clamped, because the extract that follows must
    // stay inside.
    Value* bits = MaskBits(mask);
    Value* count = builder.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, builder.getFalse());
    Value* lane = builder.CreateZExtOrTrunc(count, builder.getInt32Ty());
    return builder.CreateAnd(lane, builder.getInt32(lanes - 1));
}

}  // namespace fornax::kernel

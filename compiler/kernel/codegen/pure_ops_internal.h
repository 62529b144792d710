// What the files of EmitPureOp share. Included by pure_ops*.cpp only.
#pragma once

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

using Values = llvm::SmallVector<llvm::Value*, 2>;

// The operation with its operands, as the emitters of each group take it.
struct PureOp {
    llvm::IRBuilderBase& builder;
    ir::Op op;
    llvm::ArrayRef<llvm::Value*> in;
    llvm::Type* result;  // of result 0, scalar or vector
};

// `scalar`, or a vector of it as long as `like` is.
llvm::Type* SameShape(llvm::Type* like, llvm::Type* scalar);

// Any value instead of poison: for results that ops.def leaves open. Free in machine code.
inline llvm::Value* AnyValue(llvm::IRBuilderBase& builder, llvm::Value* value) {
    auto* constant = llvm::dyn_cast<llvm::Constant>(value);
    if (!constant) {
        return builder.CreateFreeze(value);
    }
    // Constants are folded at once, and a lane of them that is not in use may be poison, which
    // would be in all of a mask that is looked at as a number.
    if (llvm::isa<llvm::UndefValue>(constant)) {
        return llvm::Constant::getNullValue(constant->getType());
    }
    llvm::Type* element = constant->getType()->getScalarType();
    return llvm::Constant::replaceUndefsWith(constant, llvm::Constant::getNullValue(element));
}

// The module's kNativeHalfFlag, kFmaFlag, kVnniFlag and kBFloatDotFlag.
bool HasNativeHalf(const llvm::IRBuilderBase& builder);
bool HasFma(const llvm::IRBuilderBase& builder);
bool HasVnni(const llvm::IRBuilderBase& builder);
bool HasBFloatDot(const llvm::IRBuilderBase& builder);

// Between f16 and f32, in the shape of the value. LLVM's own conversions are calls without F16C.
llvm::Value* FloatFromHalf(llvm::IRBuilderBase& builder, llvm::Value* value);
llvm::Value* HalfFromFloat(llvm::IRBuilderBase& builder, llvm::Value* value);

// a * b + c of f32 or f64, rounded once, without an instruction for it. The sum must not be marked
// for contraction.
llvm::Value* FusedMultiplyAdd(llvm::IRBuilderBase& builder,
                              llvm::Value* a,
                              llvm::Value* b,
                              llvm::Value* c);

Values EmitIntegerOp(const PureOp& op);
llvm::Value* EmitDot4(const PureOp& op);
llvm::Value* EmitBFloatDot2(const PureOp& op);
Values EmitConversionOp(const PureOp& op);
Values EmitFloatOp(const PureOp& op);  // f32 and f64; f16 for what pure_ops.cpp lists as native

}  // namespace fornax::kernel

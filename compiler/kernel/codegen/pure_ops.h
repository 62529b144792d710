// Emission of pure kernel IR operations: arithmetic, comparisons, conversions and the maths
// library.
//
// One function serves uniform and varying code: operands are either all scalars or all fixed
// vectors of one length, and so are the results. Never emits a call that leaves the kernel, never a
// trap, never poison for any operand value that SPIR-V defines or that ops.def says gives "any
// value" (inactive lanes hold anything).
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

#include "base/result.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

struct TargetInfo;

// The scalar LLVM type in which values of an IR type are held: bool i1, integers iN, f32 float, f64
// double, and f16 i16: LLVM's own moves, selections and memory accesses of half convert to float
// and back, or call a library, on targets without f16 arithmetic. EmitPureOp makes halves of them.
llvm::Type* ScalarType(llvm::LLVMContext& context, ir::Type type);

// The module's kVectorBitsFlag (target.h).
uint32_t VectorBitsOf(const llvm::IRBuilderBase& builder);

// kUnsupported, naming the operation, if the kernel holds one that EmitPureOp cannot emit: the
// transcendental functions of f64, which GLSL.std.450 does not have. To be called before emission.
Status CheckPureOps(const ir::Kernel& kernel);

// Emits `inst`, which must be pure and not Const, Undef, Builtin, Buffer, BufferSize, LoadPush or
// LoadConstant. The module comes from PrepareModule (target.h).
llvm::SmallVector<llvm::Value*, 2> EmitPureOp(llvm::IRBuilderBase& builder,
                                              const ir::Kernel& kernel,
                                              const ir::Instruction& inst,
                                              llvm::ArrayRef<llvm::Value*> operands);

// a / b as an unsigned number, for scalars of 32 bits: by the inverse of b, which LLVM takes out of
// loops. b = 0 gives any value.
llvm::Value* EmitQuotientByInverse(llvm::IRBuilderBase& builder, llvm::Value* a, llvm::Value* b);

}  // namespace fornax::kernel

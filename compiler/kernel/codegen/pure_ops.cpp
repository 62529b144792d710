// EmitPureOp: sorts operations into groups and widens f16 arithmetic to f32 where the target has
// none.
#include "compiler/kernel/codegen/pure_ops.h"

#include <cassert>

#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>

#include "compiler/kernel/codegen/pure_ops_internal.h"
#include "compiler/kernel/interface/target_info.h"

namespace fornax::kernel {

using ir::Op;

namespace {

bool IsConversion(Op op) {
    return op >= Op::kTrunc && op <= Op::kQuantizeF16;
}

bool IsFloatArithmetic(Op op) {
    return (op >= Op::kFAdd && op <= Op::kModf) || (op >= Op::kFOEq && op <= Op::kIsInf);
}

// What f64 has no code for: GLSL.std.450 gives these to 16- and 32-bit floats only.
bool IsTranscendental(Op op) {
    return op >= Op::kExp && op <= Op::kATanh;
}

bool IsHalf(const llvm::Value* value) {
    return value->getType()->getScalarType()->isHalfTy();
}

// What AVX512-FP16 has instructions for.
bool IsNativeHalfOp(Op op) {
    switch (op) {
        case Op::kFAdd:
        case Op::kFSub:
        case Op::kFMul:
        case Op::kFDiv:
        case Op::kFma:
        case Op::kFloor:
        case Op::kCeil:
        case Op::kRoundEven:
        case Op::kFTruncate:
        case Op::kFract:
        case Op::kFMin:
        case Op::kFMax:
        case Op::kNMin:
        case Op::kNMax:
        case Op::kSqrt:
            return true;
        default:
            return op >= Op::kFOEq && op <= Op::kIsInf;
    }
}

// An f16 operand as f32. A product that may be fused into the sum that uses it is not rounded
// before: with AVX512-FP16 it is not either.
llvm::Value* Widen(llvm::IRBuilderBase& builder, Op op, bool may_fuse, llvm::Value* value) {
    auto* rounding = llvm::dyn_cast<llvm::FPTruncInst>(value);
    if (rounding && may_fuse && (op == Op::kFAdd || op == Op::kFSub)) {
        auto* product = llvm::dyn_cast<llvm::FPMathOperator>(rounding->getOperand(0));
        if (product && product->getOpcode() == llvm::Instruction::FMul &&
            product->getType()->getScalarType()->isFloatTy() && product->hasAllowContract()) {
            return rounding->getOperand(0);
        }
    }
    return FloatFromHalf(builder, value);
}

// FNeg and FAbs of f16 on its bits: not every target has f16 instructions.
llvm::Value* FlipSign(llvm::IRBuilderBase& builder, Op op, llvm::Value* bits) {
    llvm::Type* type = bits->getType();
    return op == Op::kFNeg ? builder.CreateXor(bits, llvm::ConstantInt::get(type, 0x8000))
                           : builder.CreateAnd(bits, llvm::ConstantInt::get(type, 0x7fff));
}

// The bits of an f16 as a half.
llvm::Value* ToHalf(llvm::IRBuilderBase& builder, llvm::Value* bits) {
    llvm::Type* half = SameShape(bits->getType(), builder.getHalfTy());
    auto* cast = llvm::dyn_cast<llvm::BitCastInst>(bits);
    if (cast && cast->getSrcTy() == half) {
        return cast->getOperand(0);
    }
    return builder.CreateBitCast(bits, half);
}

// The argument of sinh or cosh, beyond all range where e^x is infinite in f16 (see
// MathEmitter::Sinh).
llvm::Value* BeyondHalfExp(llvm::IRBuilderBase& builder, llvm::Value* x) {
    constexpr double kLargestFinite = 11.0859375;
    llvm::Value* magnitude = builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    llvm::Value* beyond =
        builder.CreateFCmpOGT(magnitude, llvm::ConstantFP::get(x->getType(), kLargestFinite));
    return builder.CreateSelect(
        beyond, builder.CreateFMul(x, llvm::ConstantFP::get(x->getType(), 16.0)), x);
}

// f16 values are halves here.
Values EmitTyped(const PureOp& op, bool may_fuse) {
    if (IsConversion(op.op)) {
        return EmitConversionOp(op);
    }
    if (!IsFloatArithmetic(op.op)) {
        return EmitIntegerOp(op);
    }
    if (!IsHalf(op.in[0]) || (HasNativeHalf(op.builder) && IsNativeHalfOp(op.op))) {
        return EmitFloatOp(op);
    }

    // f32 has more than twice the digits of f16, so one rounding at the end is right for + - * /
    // sqrt.
    llvm::SmallVector<llvm::Value*, 4> wide;
    llvm::Type* f32 = SameShape(op.result, op.builder.getFloatTy());
    for (llvm::Value* operand : op.in) {
        wide.push_back(IsHalf(operand) ? Widen(op.builder, op.op, may_fuse, operand) : operand);
    }
    bool rounds = op.result->getScalarType()->isHalfTy();
    if (op.op == Op::kSinh || op.op == Op::kCosh) {
        wide[0] = BeyondHalfExp(op.builder, wide[0]);
    }
    Values results = EmitFloatOp({op.builder, op.op, wide, rounds ? f32 : op.result});
    for (llvm::Value*& value : results) {
        if (value->getType()->isFPOrFPVectorTy()) {
            value = HalfFromFloat(op.builder, value);
        }
    }
    return results;
}

}  // namespace

llvm::Type* ScalarType(llvm::LLVMContext& context, ir::Type type) {
    switch (type) {
        case ir::Type::kF16:
            return llvm::Type::getInt16Ty(context);
        case ir::Type::kF32:
            return llvm::Type::getFloatTy(context);
        case ir::Type::kF64:
            return llvm::Type::getDoubleTy(context);
        case ir::Type::kVoid:
        case ir::Type::kBuffer:
            break;
        default:
            return llvm::Type::getIntNTy(context, ir::BitWidth(type));
    }
    assert(false && "values of this type have no scalar LLVM type");
    return nullptr;
}

llvm::Type* SameShape(llvm::Type* like, llvm::Type* scalar) {
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like)) {
        return llvm::FixedVectorType::get(scalar, vector->getNumElements());
    }
    return scalar;
}

Status CheckPureOps(const ir::Kernel& kernel) {
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        const ir::Instruction& inst = kernel.inst(ir::InstId{i});
        if (IsTranscendental(inst.op) && !inst.operands.empty() &&
            kernel.type(inst.operands[0]) == ir::Type::kF64) {
            return Error{ErrorCode::kUnsupported,
                         std::string("The operation ") + ir::InfoOf(inst.op).text +
                             " is not there for 64-bit floats (SPIR-V word " +
                             std::to_string(inst.origin) + ")."};
        }
    }
    return OkStatus();
}

Values EmitPureOp(llvm::IRBuilderBase& builder,
                  const ir::Kernel& kernel,
                  const ir::Instruction& inst,
                  llvm::ArrayRef<llvm::Value*> operands) {
    assert(!operands.empty() && operands.size() == inst.operands.size());
    llvm::IRBuilderBase::FastMathFlagGuard guard(builder);
    llvm::FastMathFlags flags;
    // Fusing a multiplication into an addition is all that is allowed by default: programs compare
    // results with references, and NaN, infinities and the sign of zero are visible.
    flags.setAllowContract(!(inst.flags & ir::kNoContraction));
    builder.setFastMathFlags(flags);

    // What only moves bits.
    if (inst.op == Op::kSelect) {
        return {builder.CreateSelect(operands[0], operands[1], operands[2])};
    }
    if (inst.op == Op::kBitcast) {
        llvm::Type* type = ScalarType(builder.getContext(), kernel.type(inst.results[0]));
        return {builder.CreateBitCast(operands[0], SameShape(operands[0]->getType(), type))};
    }
    if ((inst.op == Op::kFNeg || inst.op == Op::kFAbs) &&
        kernel.type(inst.operands[0]) == ir::Type::kF16) {
        return {FlipSign(builder, inst.op, operands[0])};
    }
    llvm::SmallVector<llvm::Value*, 4> in;
    for (size_t i = 0; i < operands.size(); ++i) {
        in.push_back(kernel.type(inst.operands[i]) == ir::Type::kF16 ? ToHalf(builder, operands[i])
                                                                     : operands[i]);
    }
    llvm::Type* scalar = kernel.type(inst.results[0]) == ir::Type::kF16
                             ? builder.getHalfTy()
                             : ScalarType(builder.getContext(), kernel.type(inst.results[0]));
    Values results = EmitTyped({builder, inst.op, in, SameShape(in[0]->getType(), scalar)},
                               flags.allowContract());
    for (llvm::Value*& value : results) {
        if (IsHalf(value)) {
            value = builder.CreateBitCast(value, SameShape(value->getType(), builder.getInt16Ty()));
        }
    }
    return results;
}

}  // namespace fornax::kernel

// EmitPureOp: sorts operations into groups and widens f16 arithmetic to f32.
#include "compiler/kernel/codegen/pure_ops.h"

#include "compiler/kernel/codegen/pure_ops_internal.h"

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

// FNeg and FAbs of f16 on its bits: not every target has f16 instructions.
llvm::Value* FlipSign(llvm::IRBuilderBase& builder, Op op, llvm::Value* value) {
    llvm::Type* type = SameShape(value->getType(), builder.getInt16Ty());
    llvm::Value* bits = builder.CreateBitCast(value, type);
    bits = op == Op::kFNeg ? builder.CreateXor(bits, llvm::ConstantInt::get(type, 0x8000))
                           : builder.CreateAnd(bits, llvm::ConstantInt::get(type, 0x7fff));
    return builder.CreateBitCast(bits, value->getType());
}

}  // namespace

llvm::Type* ScalarType(llvm::LLVMContext& context, ir::Type type) {
    switch (type) {
        case ir::Type::kF16:
            return llvm::Type::getHalfTy(context);
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
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like))
        return llvm::FixedVectorType::get(scalar, vector->getNumElements());
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

    llvm::Type* shape = operands[0]->getType();
    llvm::Type* result =
        SameShape(shape, ScalarType(builder.getContext(), kernel.type(inst.results[0])));
    if (inst.op == Op::kSelect)
        return {builder.CreateSelect(operands[0], operands[1], operands[2])};
    if (IsConversion(inst.op))
        return EmitConversionOp({builder, inst.op, operands, result});
    if (!IsFloatArithmetic(inst.op))
        return EmitIntegerOp({builder, inst.op, operands, result});
    if (!IsHalf(operands[0]))
        return EmitFloatOp({builder, inst.op, operands, result});
    if (inst.op == Op::kFNeg || inst.op == Op::kFAbs)
        return {FlipSign(builder, inst.op, operands[0])};

    // f16: f32 has more than twice the digits, so one rounding at the end is right for + - * /
    // sqrt.
    llvm::SmallVector<llvm::Value*, 4> wide;
    llvm::Type* f32 = SameShape(shape, builder.getFloatTy());
    for (llvm::Value* operand : operands)
        wide.push_back(IsHalf(operand) ? FloatFromHalf(builder, operand) : operand);
    bool rounds = kernel.type(inst.results[0]) == ir::Type::kF16;
    Values results = EmitFloatOp({builder, inst.op, wide, rounds ? f32 : result});
    for (llvm::Value*& value : results) {
        if (value->getType()->isFPOrFPVectorTy())
            value = HalfFromFloat(builder, value);
    }
    return results;
}

}  // namespace fornax::kernel

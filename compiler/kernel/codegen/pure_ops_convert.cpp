// Conversions between types.
//
// x86 converts f16 only from and to f32; everything else between f16 and another type goes through
// f32 without a second rounding.
#include <llvm/IR/Intrinsics.h>

#include "compiler/kernel/codegen/pure_ops_internal.h"

namespace fornax::kernel {

using ir::Op;

namespace {

class ConversionEmitter {
  public:
    explicit ConversionEmitter(const PureOp& op)
        : b_(op.builder), op_(op.op), in_(op.in[0]), from_(in_->getType()), to_(op.result) {}

    llvm::Value* Emit();

  private:
    llvm::Type* F32() { return SameShape(from_, b_.getFloatTy()); }
    static bool IsHalf(llvm::Type* type) { return type->getScalarType()->isHalfTy(); }
    static bool IsDouble(llvm::Type* type) { return type->getScalarType()->isDoubleTy(); }

    llvm::Value* FloatToFloat();
    llvm::Value* RoundToOdd();
    llvm::Value* FloatToInteger(bool is_signed);
    llvm::Value* IntegerToFloat(bool is_signed);
    llvm::Value* QuantizeToHalf();

    llvm::IRBuilderBase& b_;
    Op op_;
    llvm::Value* in_;
    llvm::Type* from_;
    llvm::Type* to_;
};

// f64 to f32 such that a second rounding, to f16, gives what one rounding would: an inexact result
// gets an odd last digit, so it is never a tie (Boldo and Melquiond, "Emulation of FMA and
// correctly rounded sums: proved algorithms using rounding to odd").
llvm::Value* ConversionEmitter::RoundToOdd() {
    llvm::Type* int_type = SameShape(from_, b_.getInt32Ty());
    auto constant = [&](int64_t value) { return llvm::ConstantInt::get(int_type, value); };
    llvm::Value* nearest = b_.CreateFPTrunc(in_, F32());
    llvm::Value* back = b_.CreateFPExt(nearest, from_);
    llvm::Value* bits = b_.CreateBitCast(nearest, int_type);
    // A nearest value that is even has an odd neighbour on the side where the exact value lies.
    llvm::Value* above = b_.CreateFCmpOGT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                          b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, in_));
    llvm::Value* neighbour = b_.CreateAdd(bits, b_.CreateSelect(above, constant(-1), constant(1)));
    llvm::Value* even = b_.CreateICmpEQ(b_.CreateAnd(bits, constant(1)), constant(0));
    llvm::Value* adjust = b_.CreateAnd(even, b_.CreateFCmpONE(back, in_));
    return b_.CreateBitCast(b_.CreateSelect(adjust, neighbour, bits), F32());
}

llvm::Value* ConversionEmitter::FloatToFloat() {
    if (IsDouble(from_) && IsHalf(to_))
        return b_.CreateFPTrunc(RoundToOdd(), to_);
    if (IsHalf(from_) && IsDouble(to_))
        return b_.CreateFPExt(b_.CreateFPExt(in_, F32()), to_);
    return b_.CreateFPCast(in_, to_);
}

llvm::Value* ConversionEmitter::FloatToInteger(bool is_signed) {
    llvm::Value* value = IsHalf(from_) ? b_.CreateFPExt(in_, F32()) : in_;
    return AnyValue(b_, is_signed ? b_.CreateFPToSI(value, to_) : b_.CreateFPToUI(value, to_));
}

// To f16: integers that f32 must round are beyond f16's range, so the second rounding is the only
// one.
llvm::Value* ConversionEmitter::IntegerToFloat(bool is_signed) {
    llvm::Type* type = IsHalf(to_) ? F32() : to_;
    llvm::Value* value = is_signed ? b_.CreateSIToFP(in_, type) : b_.CreateUIToFP(in_, type);
    return IsHalf(to_) ? b_.CreateFPTrunc(value, to_) : value;
}

// OpQuantizeToF16: magnitudes below the smallest normal f16 become zero of the same sign.
llvm::Value* ConversionEmitter::QuantizeToHalf() {
    llvm::Type* half = SameShape(from_, b_.getHalfTy());
    llvm::Value* rounded = b_.CreateFPExt(b_.CreateFPTrunc(in_, half), from_);
    llvm::Value* magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, rounded);
    llvm::Value* denormal = b_.CreateFCmpOLT(magnitude, llvm::ConstantFP::get(from_, 0x1p-14));
    llvm::Value* zero = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign,
                                                 llvm::ConstantFP::get(from_, 0.0), rounded);
    return b_.CreateSelect(denormal, zero, rounded);
}

llvm::Value* ConversionEmitter::Emit() {
    switch (op_) {
        case Op::kTrunc:
            return b_.CreateTrunc(in_, to_);
        case Op::kZExt:
            return b_.CreateZExt(in_, to_);
        case Op::kSExt:
            return b_.CreateSExt(in_, to_);
        case Op::kFConvert:
            return FloatToFloat();
        case Op::kFToS:
            return FloatToInteger(true);
        case Op::kFToU:
            return FloatToInteger(false);
        case Op::kSToF:
            return IntegerToFloat(true);
        case Op::kUToF:
            return IntegerToFloat(false);
        case Op::kBitcast:
            return b_.CreateBitCast(in_, to_);
        case Op::kQuantizeF16:
            return QuantizeToHalf();
        default:
            break;
    }
    assert(false && "not a conversion");
    return nullptr;
}

}  // namespace

Values EmitConversionOp(const PureOp& op) {
    return {ConversionEmitter(op).Emit()};
}

}  // namespace fornax::kernel

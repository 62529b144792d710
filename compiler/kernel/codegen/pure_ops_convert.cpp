// Conversions between types.
//
// x86 converts f16 only from and to f32; everything else between f16 and another type goes through
// f32 without a second rounding.
#include <cassert>
#include <cmath>
#include <numeric>

#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include "compiler/kernel/codegen/pure_ops_internal.h"
#include "compiler/kernel/codegen/target_machine.h"

namespace fornax::kernel {

using ir::Op;

namespace {

uint32_t ModuleFlag(const llvm::IRBuilderBase& builder, const char* name) {
    const llvm::Module* module = builder.GetInsertBlock()->getModule();
    auto* value = llvm::mdconst::extract_or_null<llvm::ConstantInt>(module->getModuleFlag(name));
    assert(value && "the module did not come from PrepareModule");
    return static_cast<uint32_t>(value->getZExtValue());
}

}  // namespace

uint32_t VectorBitsOf(const llvm::IRBuilderBase& builder) {
    return ModuleFlag(builder, kVectorBitsFlag);
}

bool HasNativeHalf(const llvm::IRBuilderBase& builder) {
    return ModuleFlag(builder, kNativeHalfFlag) != 0;
}

bool HasFma(const llvm::IRBuilderBase& builder) {
    return ModuleFlag(builder, kFmaFlag) != 0;
}

bool HasVnni(const llvm::IRBuilderBase& builder) {
    return ModuleFlag(builder, kVnniFlag) != 0;
}

bool HasBFloatDot(const llvm::IRBuilderBase& builder) {
    return ModuleFlag(builder, kBFloatDotFlag) != 0;
}

llvm::Value* FloatFromHalf(llvm::IRBuilderBase& b, llvm::Value* value) {
    llvm::Type* f32 = SameShape(value->getType(), b.getFloatTy());
    if (VectorBitsOf(b) >= 256) {
        return b.CreateFPExt(value, f32);
    }
    llvm::Type* i32 = SameShape(value->getType(), b.getInt32Ty());
    auto constant = [&](uint32_t bits) { return llvm::ConstantInt::get(i32, bits); };
    llvm::Value* bits = b.CreateZExt(b.CreateBitCast(value, SameShape(f32, b.getInt16Ty())), i32);
    llvm::Value* sign = b.CreateShl(b.CreateAnd(bits, constant(0x8000)), constant(16));
    llvm::Value* magnitude = b.CreateAnd(bits, constant(0x7fff));
    // The exponent's bias grows by 112; as a multiplication this is right for denormals too.
    llvm::Value* finite = b.CreateFMul(b.CreateBitCast(b.CreateShl(magnitude, constant(13)), f32),
                                       llvm::ConstantFP::get(f32, 0x1p112));
    llvm::Value* special = b.CreateICmpUGE(magnitude, constant(0x7c00));
    llvm::Value* wide = b.CreateBitCast(finite, i32);
    wide = b.CreateOr(wide, b.CreateSelect(special, constant(0x7f800000), constant(0)));
    return b.CreateBitCast(b.CreateOr(wide, sign), f32);
}

llvm::Value* HalfFromFloat(llvm::IRBuilderBase& b, llvm::Value* value) {
    llvm::Type* f32 = value->getType();
    llvm::Type* half = SameShape(f32, b.getHalfTy());
    if (VectorBitsOf(b) >= 256) {
        return b.CreateFPTrunc(value, half);
    }
    llvm::Type* i32 = SameShape(f32, b.getInt32Ty());
    auto constant = [&](uint32_t bits) { return llvm::ConstantInt::get(i32, bits); };
    llvm::Value* bits = b.CreateBitCast(value, i32);
    llvm::Value* magnitude = b.CreateAnd(bits, constant(0x7fffffff));
    // Nearest even: add just under half of the last kept digit, and one more if that digit is odd.
    llvm::Value* odd = b.CreateAnd(b.CreateLShr(magnitude, constant(13)), constant(1));
    llvm::Value* rebased = b.CreateSub(magnitude, constant((112 << 23) - 0xfff));
    llvm::Value* normal = b.CreateLShr(b.CreateAdd(rebased, odd), constant(13));
    // Below 2^-14: the sum with 1/2 has its last digit where f16's last digit is.
    llvm::Value* sum =
        b.CreateFAdd(b.CreateBitCast(magnitude, f32), llvm::ConstantFP::get(f32, 0.5));
    llvm::Value* denormal = b.CreateSub(b.CreateBitCast(sum, i32), constant(0x3f000000));
    llvm::Value* special = b.CreateSelect(b.CreateICmpUGT(magnitude, constant(0x7f800000)),
                                          constant(0x7e00), constant(0x7c00));
    llvm::Value* result =
        b.CreateSelect(b.CreateICmpULT(magnitude, constant(113 << 23)), denormal, normal);
    // From 65520 on, half way beyond the largest f16, it is infinity.
    result = b.CreateSelect(b.CreateICmpUGE(magnitude, constant(0x477ff000)), special, result);
    llvm::Value* sign = b.CreateAnd(b.CreateLShr(bits, constant(16)), constant(0x8000));
    llvm::Value* narrow = b.CreateTrunc(b.CreateOr(result, sign), SameShape(f32, b.getInt16Ty()));
    return b.CreateBitCast(narrow, half);
}

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

    llvm::Value* Saturated();
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

// x of id(x, bound).
llvm::Value* BoundedValue(llvm::Value* value, llvm::Intrinsic::ID id, int64_t bound) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(value);
    if (!call || call->getIntrinsicID() != id) {
        return nullptr;
    }
    auto* constant = llvm::dyn_cast<llvm::Constant>(call->getArgOperand(1));
    auto* splat = constant ? constant->getSplatValue() : nullptr;
    auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(splat);
    return number && number->getSExtValue() == bound ? call->getArgOperand(0) : nullptr;
}

// x of a signed value x that is clamped to [low, high], in either order.
llvm::Value* ClampedValue(llvm::Value* value, int64_t low, int64_t high) {
    using llvm::Intrinsic::smax;
    using llvm::Intrinsic::smin;
    if (llvm::Value* above = BoundedValue(value, smin, high)) {
        return BoundedValue(above, smax, low);
    }
    llvm::Value* below = BoundedValue(value, smax, low);
    return below ? BoundedValue(below, smin, high) : nullptr;
}

// Words clamped to what bytes hold. AVX-512 has an instruction for it, but it keeps the shuffle
// port busy for twice as long as it takes to pack four registers into one and to put the
// parts in order. Null for anything else.
llvm::Value* ConversionEmitter::Saturated() {
    constexpr unsigned kWords = 16;  // of a register
    constexpr unsigned kLanes = 64;  // bytes of a register
    auto* type = llvm::dyn_cast<llvm::FixedVectorType>(from_);
    if (!type || VectorBitsOf(b_) < 512 || !type->getElementType()->isIntegerTy(32) ||
        !to_->getScalarType()->isIntegerTy(8) || type->getNumElements() != kLanes) {
        return nullptr;
    }
    llvm::Value* words = ClampedValue(in_, INT8_MIN, INT8_MAX);
    const bool is_signed = words != nullptr;
    if (!is_signed) {
        words = ClampedValue(in_, 0, UINT8_MAX);
    }
    if (!words) {
        return nullptr;
    }
    auto part = [&](unsigned index) {
        llvm::SmallVector<int, kWords> pick(kWords);
        std::iota(pick.begin(), pick.end(), static_cast<int>(index * kWords));
        return b_.CreateShuffleVector(words, pick);
    };
    auto pack = [&](llvm::Intrinsic::ID id, llvm::Value* a, llvm::Value* b) {
        return b_.CreateIntrinsic(id, {}, {a, b});
    };
    llvm::Value* low = pack(llvm::Intrinsic::x86_avx512_packssdw_512, part(0), part(1));
    llvm::Value* high = pack(llvm::Intrinsic::x86_avx512_packssdw_512, part(2), part(3));
    llvm::Value* bytes = pack(is_signed ? llvm::Intrinsic::x86_avx512_packsswb_512
                                        : llvm::Intrinsic::x86_avx512_packuswb_512,
                              low, high);
    // Every 128 bits hold four bytes of each of the four registers.
    llvm::SmallVector<int, kLanes> order;
    for (int i = 0; i < static_cast<int>(kLanes); ++i) {
        order.push_back(i % 16 / 4 * 16 + i / 16 * 4 + i % 4);
    }
    return b_.CreateShuffleVector(bytes, order);
}

llvm::Value* ConversionEmitter::FloatToFloat() {
    if (IsDouble(from_) && IsHalf(to_)) {
        return HalfFromFloat(b_, RoundToOdd());
    }
    if (IsHalf(from_) && IsDouble(to_)) {
        return b_.CreateFPExt(FloatFromHalf(b_, in_), to_);
    }
    if (IsHalf(from_) != IsHalf(to_)) {
        return IsHalf(from_) ? FloatFromHalf(b_, in_) : HalfFromFloat(b_, in_);
    }
    return b_.CreateFPCast(in_, to_);
}

// To unsigned: negative numbers and NaNs give 0, what is too large the largest integer. SPIR-V
// leaves these open, but processors' own answers differ, and some are neither wrapped nor clamped.
llvm::Value* ConversionEmitter::FloatToInteger(bool is_signed) {
    llvm::Value* value = IsHalf(from_) ? FloatFromHalf(b_, in_) : in_;
    if (is_signed) {
        return AnyValue(b_, b_.CreateFPToSI(value, to_));
    }
    llvm::Constant* zero = llvm::ConstantFP::get(value->getType(), 0.0);
    value = b_.CreateSelect(b_.CreateFCmpOGT(value, zero), value, zero);
    llvm::Value* result = AnyValue(b_, b_.CreateFPToUI(value, to_));
    const int bits = static_cast<int>(to_->getScalarSizeInBits());
    llvm::Constant* limit = llvm::ConstantFP::get(value->getType(), std::ldexp(1.0, bits));
    return b_.CreateSelect(b_.CreateFCmpOLT(value, limit), result,
                           llvm::Constant::getAllOnesValue(to_));
}

// To f16: integers that f32 must round are beyond f16's range, so the second rounding is the only
// one.
llvm::Value* ConversionEmitter::IntegerToFloat(bool is_signed) {
    llvm::Type* type = IsHalf(to_) ? F32() : to_;
    llvm::Value* value = is_signed ? b_.CreateSIToFP(in_, type) : b_.CreateUIToFP(in_, type);
    return IsHalf(to_) ? HalfFromFloat(b_, value) : value;
}

// OpQuantizeToF16: magnitudes below the smallest normal f16 become zero of the same sign.
llvm::Value* ConversionEmitter::QuantizeToHalf() {
    llvm::Value* rounded = FloatFromHalf(b_, HalfFromFloat(b_, in_));
    llvm::Value* magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, rounded);
    llvm::Value* denormal = b_.CreateFCmpOLT(magnitude, llvm::ConstantFP::get(from_, 0x1p-14));
    llvm::Value* zero = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign,
                                                 llvm::ConstantFP::get(from_, 0.0), rounded);
    return b_.CreateSelect(denormal, zero, rounded);
}

llvm::Value* ConversionEmitter::Emit() {
    switch (op_) {
        case Op::kTrunc:
            if (llvm::Value* bytes = Saturated()) {
                return bytes;
            }
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

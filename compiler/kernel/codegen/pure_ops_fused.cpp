// a * b + c, rounded once (OpFmaKHR), for processors without an instruction for it. f32 is computed
// in f64, vectors at a time; f64 in integers of 128 bits, by a function of the module.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include "compiler/kernel/codegen/pure_ops_internal.h"

namespace fornax::kernel {

namespace {

using V = llvm::Value*;

// The f64 product of two f32 is exact. Its sum with the third is rounded to odd, which tells a
// second rounding to less than half as many digits all that it needs (Boldo and Melquiond,
// Emulation of a FMA and Correctly Rounded Sums: Proved Algorithms Using Rounding to Odd, 2008).
V FusedSingle(llvm::IRBuilderBase& b, V x, V y, V z) {
    llvm::Type* type = SameShape(x->getType(), b.getDoubleTy());
    llvm::Type* bits_type = SameShape(x->getType(), b.getInt64Ty());
    auto bits_of = [&](uint64_t bits) { return llvm::ConstantInt::get(bits_type, bits); };
    V zero = llvm::Constant::getNullValue(type);
    V product = b.CreateFMul(b.CreateFPExt(x, type), b.CreateFPExt(y, type));
    V addend = b.CreateFPExt(z, type);
    V sum = b.CreateFAdd(product, addend);
    V added = b.CreateFSub(sum, product);
    V error =
        b.CreateFAdd(b.CreateFSub(product, b.CreateFSub(sum, added)), b.CreateFSub(addend, added));
    // Infinities and NaN have no error, and stay as they are.
    V inexact = b.CreateFCmpONE(error, zero);
    V bits = b.CreateBitCast(sum, bits_type);
    V even = b.CreateICmpEQ(b.CreateAnd(bits, bits_of(1)), bits_of(0));
    V grows = b.CreateICmpEQ(b.CreateFCmpOGT(error, zero), b.CreateFCmpOGT(sum, zero));
    V odd = b.CreateAdd(bits, b.CreateSelect(grows, bits_of(1), bits_of(~uint64_t{0})));
    bits = b.CreateSelect(b.CreateAnd(inexact, even), odd, bits);
    return b.CreateFPTrunc(b.CreateBitCast(bits, type), x->getType());
}

// The function for f64, of scalars.
class DoubleFunction {
  public:
    explicit DoubleFunction(llvm::Module& module) : b_(module.getContext()), module_(module) {}

    llvm::Function* Get() {
        constexpr char kName[] = "fornax.fused64";
        if (llvm::Function* made = module_.getFunction(kName)) {
            return made;
        }
        llvm::Type* type = b_.getDoubleTy();
        auto* function =
            llvm::Function::Create(llvm::FunctionType::get(type, {type, type, type}, false),
                                   llvm::GlobalValue::InternalLinkage, kName, module_);
        function->setDoesNotThrow();
        function->setWillReturn();
        function->setDoesNotAccessMemory();
        b_.SetInsertPoint(llvm::BasicBlock::Create(b_.getContext(), "entry", function));
        Emit(*function);
        return function;
    }

  private:
    // value = significand * 2^exponent; the significand has 53 bits.
    struct Number {
        V sign = nullptr;  // i64: 0 or 1
        V significand = nullptr;
        V exponent = nullptr;  // i64
    };
    static constexpr int64_t kDigits = 53;

    V I(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
    V Wide(uint64_t value) { return llvm::ConstantInt::get(b_.getInt128Ty(), value); }
    V Widen(V value) { return b_.CreateZExt(value, b_.getInt128Ty()); }
    V Least(V x, V y) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y); }
    V Most(V x, V y) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, y); }

    Number Unpack(V value);
    V ShiftRight(V value, V count);
    void Emit(llvm::Function& function);

    llvm::IRBuilder<> b_;
    llvm::Module& module_;
};

// The value must be finite and not 0.
DoubleFunction::Number DoubleFunction::Unpack(V value) {
    V bits = b_.CreateBitCast(value, b_.getInt64Ty());
    V biased = b_.CreateAnd(b_.CreateLShr(bits, 52), I(0x7ff));
    V fraction = b_.CreateAnd(bits, I((int64_t{1} << 52) - 1));
    V normal = b_.CreateICmpNE(biased, I(0));
    V digits = b_.CreateSelect(normal, b_.CreateOr(fraction, I(int64_t{1} << 52)), fraction);
    V zeros = b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, digits, b_.getFalse());
    V missing = b_.CreateSub(zeros, I(64 - kDigits));
    // The exponent of denormal numbers is that of the least normal ones.
    V exponent = b_.CreateSub(Most(biased, I(1)), I(1023 + kDigits - 1));
    return {b_.CreateLShr(bits, 63), b_.CreateShl(digits, b_.CreateAnd(missing, I(63))),
            b_.CreateSub(exponent, missing)};
}

// By at most 127. Bits that are lost leave a 1 in the lowest place.
V DoubleFunction::ShiftRight(V value, V count) {
    V amount = Widen(Least(count, I(127)));
    V rest = b_.CreateAnd(value, b_.CreateSub(b_.CreateShl(Wide(1), amount), Wide(1)));
    V lost = Widen(b_.CreateICmpNE(rest, Wide(0)));
    return b_.CreateOr(b_.CreateLShr(value, amount), lost);
}

void DoubleFunction::Emit(llvm::Function& function) {
    V x = function.getArg(0);
    V y = function.getArg(1);
    V z = function.getArg(2);
    auto exponent_bits = [&](V value) {
        return b_.CreateAnd(b_.CreateBitCast(value, b_.getInt64Ty()), I(0x7ff0000000000000));
    };
    auto is_zero = [&](V value) {
        return b_.CreateFCmpOEQ(value, llvm::ConstantFP::get(b_.getDoubleTy(), 0.0));
    };
    auto not_finite = [&](V value) {
        return b_.CreateICmpEQ(exponent_bits(value), I(0x7ff0000000000000));
    };
    // Where a factor is 0, infinite or NaN the product is exact, and the sum is rounded once. Next
    // to finite factors an infinite addend is the result, and one of 0 changes nothing.
    V special_factor =
        b_.CreateOr(b_.CreateOr(is_zero(x), is_zero(y)), b_.CreateOr(not_finite(x), not_finite(y)));
    V plain_product = b_.CreateFMul(x, y);
    V special = b_.CreateSelect(special_factor, b_.CreateFAdd(plain_product, z),
                                b_.CreateSelect(is_zero(z), plain_product, b_.CreateFAdd(z, z)));
    V is_special = b_.CreateOr(special_factor, b_.CreateOr(is_zero(z), not_finite(z)));
    llvm::BasicBlock* finite = llvm::BasicBlock::Create(b_.getContext(), "finite", &function);
    llvm::BasicBlock* other = llvm::BasicBlock::Create(b_.getContext(), "special", &function);
    b_.CreateCondBr(is_special, other, finite);
    b_.SetInsertPoint(other);
    b_.CreateRet(special);
    b_.SetInsertPoint(finite);

    const Number factor = Unpack(x);
    const Number other_factor = Unpack(y);
    const Number addend = Unpack(z);
    // The product lies in [2^122, 2^124), in units of 2^unit; the addend below 2^124. Whichever is
    // much smaller loses digits, and then its highest is 2^18 units below the other's or more, so
    // that no difference brings them back.
    constexpr int64_t kRoom = 18;
    V unit = b_.CreateSub(b_.CreateAdd(factor.exponent, other_factor.exponent), I(kRoom));
    V product = b_.CreateShl(
        b_.CreateMul(Widen(factor.significand), Widen(other_factor.significand)), Wide(kRoom));
    constexpr int64_t kMostLeft = 124 - kDigits;
    V distance = b_.CreateSub(addend.exponent, unit);
    V left = Most(Least(distance, I(kMostLeft)), I(0));
    V sum = b_.CreateShl(Widen(addend.significand), Widen(left));
    sum = ShiftRight(sum, Most(b_.CreateNeg(distance), I(0)));
    V drop = Most(b_.CreateSub(distance, I(kMostLeft)), I(0));
    product = ShiftRight(product, drop);
    unit = b_.CreateAdd(unit, drop);

    V product_sign = b_.CreateXor(factor.sign, other_factor.sign);
    V same = b_.CreateICmpEQ(product_sign, addend.sign);
    sum = b_.CreateAdd(product, b_.CreateSelect(same, sum, b_.CreateNeg(sum)));
    V negative = b_.CreateICmpSLT(sum, Wide(0));
    sum = b_.CreateSelect(negative, b_.CreateNeg(sum), sum);
    V sign = b_.CreateSelect(negative, addend.sign, product_sign);
    V vanished = b_.CreateICmpEQ(sum, Wide(0));
    sign = b_.CreateSelect(vanished, I(0), sign);

    // The highest digit goes to 2^125, from where 73 digits are dropped, and more of what is less
    // than the least normal number.
    V zeros = b_.CreateTrunc(b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, sum, b_.getFalse()),
                             b_.getInt64Ty());
    sum = b_.CreateShl(sum, Widen(b_.CreateAnd(zeros, I(127))));
    sum = ShiftRight(sum, I(2));
    V exponent = b_.CreateSub(b_.CreateAdd(unit, I(127)), zeros);
    V base = b_.CreateAdd(Most(exponent, I(-1022)), I(1022));
    V dropped = b_.CreateAdd(I(125 + 1 - kDigits), Most(b_.CreateSub(I(-1022), exponent), I(0)));
    V amount = Widen(Least(dropped, I(127)));
    V kept = b_.CreateTrunc(b_.CreateLShr(sum, amount), b_.getInt64Ty());
    V rest = b_.CreateAnd(sum, b_.CreateSub(b_.CreateShl(Wide(1), amount), Wide(1)));
    V half = b_.CreateLShr(b_.CreateShl(Wide(1), amount), Wide(1));
    V up = b_.CreateOr(
        b_.CreateICmpUGT(rest, half),
        b_.CreateAnd(b_.CreateICmpEQ(rest, half), b_.CreateTrunc(kept, b_.getInt1Ty())));
    kept = b_.CreateAdd(kept, b_.CreateZExt(up, b_.getInt64Ty()));
    // The highest digit of a normal number adds one to the exponent's field, and so does a carry.
    V bits = b_.CreateAdd(b_.CreateShl(base, 52), kept);
    bits = b_.CreateSelect(b_.CreateICmpSGT(exponent, I(1023)), I(0x7ff0000000000000), bits);
    bits = b_.CreateSelect(vanished, I(0), bits);
    bits = b_.CreateOr(bits, b_.CreateShl(sign, 63));
    b_.CreateRet(b_.CreateBitCast(bits, b_.getDoubleTy()));
}

V FusedDouble(llvm::IRBuilderBase& b, V x, V y, V z) {
    llvm::Function* function = DoubleFunction(*b.GetInsertBlock()->getModule()).Get();
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
    if (!vector) {
        return b.CreateCall(function, {x, y, z});
    }
    V result = llvm::PoisonValue::get(vector);
    for (uint64_t lane = 0; lane < vector->getNumElements(); ++lane) {
        auto part = [&](V value) { return b.CreateExtractElement(value, lane); };
        result = b.CreateInsertElement(result, b.CreateCall(function, {part(x), part(y), part(z)}),
                                       lane);
    }
    return result;
}

}  // namespace

llvm::Value* FusedMultiplyAdd(llvm::IRBuilderBase& builder, V a, V b, V c) {
    const bool is_double = a->getType()->getScalarType()->isDoubleTy();
    return is_double ? FusedDouble(builder, a, b, c) : FusedSingle(builder, a, b, c);
}

}  // namespace fornax::kernel

// Float operations of f32 and f64 other than the transcendental functions, to which it leads.
#include <cassert>
#include <cmath>

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include "compiler/kernel/codegen/math_emitter.h"
#include "compiler/kernel/codegen/pure_ops_internal.h"

namespace fornax::kernel {

using ir::Op;
namespace Intrinsic = llvm::Intrinsic;

namespace {

class FloatEmitter {
  public:
    explicit FloatEmitter(const PureOp& op)
        : b_(op.builder),
          op_(op.op),
          in_(op.in),
          type_(in_[0]->getType()),
          int_type_(SameShape(type_, b_.getIntNTy(type_->getScalarSizeInBits()))) {}

    Values Emit();

  private:
    using V = llvm::Value*;

    V F(double value) const { return llvm::ConstantFP::get(type_, value); }
    V I(int64_t value) const {
        return llvm::ConstantInt::get(int_type_, static_cast<uint64_t>(value), true);
    }
    bool is_double() const { return type_->getScalarType()->isDoubleTy(); }
    V Unary(Intrinsic::ID id, V a) { return b_.CreateUnaryIntrinsic(id, a); }
    V CopySign(V magnitude, V sign) {
        return b_.CreateBinaryIntrinsic(Intrinsic::copysign, magnitude, sign);
    }

    V Remainder(Intrinsic::ID rounding);
    V Sign();
    // What x86's minps and maxps do: the second operand if either is NaN.
    V Smaller(V a, V b) { return b_.CreateSelect(b_.CreateFCmpOLT(a, b), a, b); }
    V Greater(V a, V b) { return b_.CreateSelect(b_.CreateFCmpOGT(a, b), a, b); }
    V UnlessNan(V result, V b, V a) { return b_.CreateSelect(b_.CreateFCmpUNO(b, b), a, result); }
    V LdexpDouble(V x, V exponent);
    Values Frexp();
    Values Modf();
    V EmitMath();

    llvm::IRBuilderBase& b_;
    Op op_;
    llvm::ArrayRef<llvm::Value*> in_;
    llvm::Type* type_;
    llvm::Type* int_type_;
};

// x - y * round(x / y), which is how SPIR-V's precision table defines both remainders.
llvm::Value* FloatEmitter::Remainder(Intrinsic::ID rounding) {
    b_.setFastMathFlags(llvm::FastMathFlags());
    V quotient = Unary(rounding, b_.CreateFDiv(in_[0], in_[1]));
    return b_.CreateIntrinsic(Intrinsic::fmuladd, {type_},
                              {b_.CreateFNeg(quotient), in_[1], in_[0]});
}

// Zeros keep their sign and NaN stays.
// A NaN gives 0, which is one of the results of numbers.
llvm::Value* FloatEmitter::Sign() {
    V zero = b_.CreateSelect(b_.CreateFCmpOEQ(in_[0], F(0.0)), in_[0], F(0.0));
    V nonzero = b_.CreateFCmpONE(in_[0], F(0.0));
    return b_.CreateSelect(nonzero, CopySign(F(1.0), in_[0]), zero);
}

// Three factors cover the whole range. The first steps down stay 53 binary digits above the
// denormals, so only the last multiplication rounds.
llvm::Value* FloatEmitter::LdexpDouble(V x, V exponent) {
    V left = b_.CreateSExt(exponent, int_type_);
    constexpr int64_t kUp = 1023;
    constexpr int64_t kDown = -1022 + 53;
    for (int step = 0; step < 3; ++step) {
        int64_t low = step == 2 ? -1022 : kDown;
        V part = b_.CreateBinaryIntrinsic(Intrinsic::smin, left, I(kUp));
        part = b_.CreateBinaryIntrinsic(Intrinsic::smax, part, I(low));
        if (step < 2) {
            // An exponent that one factor can hold is not split.
            V fits = b_.CreateICmpSGE(left, I(-1022));
            part = b_.CreateSelect(fits, b_.CreateBinaryIntrinsic(Intrinsic::smin, left, I(kUp)),
                                   part);
        }
        V power = b_.CreateBitCast(b_.CreateShl(b_.CreateAdd(part, I(1023)), I(52)), type_);
        x = b_.CreateFMul(x, power);
        left = b_.CreateSub(left, part);
    }
    return x;
}

// Significand in [1/2, 1) and exponent; 0 for 0. Infinities and NaN are undefined: any exponent.
Values FloatEmitter::Frexp() {
    int digits = is_double() ? 52 : 23;
    int bias = is_double() ? 1022 : 126;
    int64_t exponent_mask = is_double() ? 0x7ff : 0xff;
    double smallest = is_double() ? 0x1p-1022 : 0x1p-126;
    V x = in_[0];
    V magnitude = Unary(Intrinsic::fabs, x);
    V zero = b_.CreateFCmpOEQ(x, F(0.0));
    V denormal = b_.CreateFCmpOLT(magnitude, F(smallest));
    V normal = b_.CreateSelect(denormal, b_.CreateFMul(x, F(std::ldexp(1.0, digits + 1))), x);
    V bits = b_.CreateBitCast(normal, int_type_);
    V exponent = b_.CreateAnd(b_.CreateLShr(bits, I(digits)), I(exponent_mask));
    exponent = b_.CreateSub(exponent, b_.CreateSelect(denormal, I(bias + digits + 1), I(bias)));
    V fraction = b_.CreateAnd(bits, I(~(exponent_mask << digits)));
    fraction = b_.CreateOr(fraction, I(static_cast<int64_t>(bias) << digits));
    V significand = b_.CreateBitCast(fraction, type_);
    llvm::Type* i32 = SameShape(type_, b_.getInt32Ty());
    return {b_.CreateSelect(zero, x, significand),
            b_.CreateTrunc(b_.CreateSelect(zero, I(0), exponent), i32)};
}

Values FloatEmitter::Modf() {
    V whole = Unary(Intrinsic::trunc, in_[0]);
    V same = b_.CreateFCmpOEQ(whole, in_[0]);  // integers and infinities
    V fraction = b_.CreateSelect(same, F(0.0), b_.CreateFSub(in_[0], whole));
    return {CopySign(fraction, in_[0]), whole};
}

llvm::Value* FloatEmitter::EmitMath() {
    assert(type_->getScalarType()->isFloatTy() && "CheckPureOps refuses these for f64");
    MathEmitter math(b_, type_);
    V a = in_[0];
    switch (op_) {
        case Op::kRSqrt:
            return math.RSqrt(a);
        case Op::kExp:
            return math.Exp(a);
        case Op::kExp2:
            return math.Exp2(a);
        case Op::kLog:
            return math.Log(a);
        case Op::kLog2:
            return math.Log2(a);
        case Op::kPow:
            return math.Pow(a, in_[1]);
        case Op::kSin:
            return math.Sin(a);
        case Op::kCos:
            return math.Cos(a);
        case Op::kTan:
            return math.Tan(a);
        case Op::kASin:
            return math.ASin(a);
        case Op::kACos:
            return math.ACos(a);
        case Op::kATan:
            return math.ATan(a);
        case Op::kATan2:
            return math.ATan2(a, in_[1]);
        case Op::kSinh:
            return math.Sinh(a);
        case Op::kCosh:
            return math.Cosh(a);
        case Op::kTanh:
            return math.Tanh(a);
        case Op::kASinh:
            return math.ASinh(a);
        case Op::kACosh:
            return math.ACosh(a);
        case Op::kATanh:
            return math.ATanh(a);
        case Op::kLdexp:
            return math.Ldexp(a, in_[1]);
        default:
            break;
    }
    assert(false && "not a pure float operation");
    return nullptr;
}

Values FloatEmitter::Emit() {
    V a = in_[0];
    V c = in_.size() > 1 ? in_[1] : nullptr;
    switch (op_) {
        case Op::kFOEq:
            return {b_.CreateFCmpOEQ(a, c)};
        case Op::kFONe:
            return {b_.CreateFCmpONE(a, c)};
        case Op::kFOLt:
            return {b_.CreateFCmpOLT(a, c)};
        case Op::kFOLe:
            return {b_.CreateFCmpOLE(a, c)};
        case Op::kFUEq:
            return {b_.CreateFCmpUEQ(a, c)};
        case Op::kFUNe:
            return {b_.CreateFCmpUNE(a, c)};
        case Op::kFULt:
            return {b_.CreateFCmpULT(a, c)};
        case Op::kFULe:
            return {b_.CreateFCmpULE(a, c)};
        case Op::kIsNan:
            return {b_.CreateFCmpUNO(a, a)};
        case Op::kIsInf:
            return {
                b_.CreateFCmpOEQ(Unary(Intrinsic::fabs, a), llvm::ConstantFP::getInfinity(type_))};
        case Op::kFAdd:
            return {b_.CreateFAdd(a, c)};
        case Op::kFSub:
            return {b_.CreateFSub(a, c)};
        case Op::kFMul:
            return {b_.CreateFMul(a, c)};
        case Op::kFDiv:
            return {b_.CreateFDiv(a, c)};
        case Op::kFRem:
            return {Remainder(Intrinsic::trunc)};
        case Op::kFMod:
            return {Remainder(Intrinsic::floor)};
        case Op::kFNeg:
            return {b_.CreateFNeg(a)};
        case Op::kFma:
            // Fused where the target has the instruction; GLSL.std.450 allows both, OpFmaKHR does
            // not, and llvm.fma would call a library.
            if (!b_.getFastMathFlags().allowContract() && !HasFma(b_)) {
                return {FusedMultiplyAdd(b_, a, c, in_[2])};
            }
            return {b_.CreateIntrinsic(Intrinsic::fmuladd, {type_}, {a, c, in_[2]})};
        case Op::kFAbs:
            return {Unary(Intrinsic::fabs, a)};
        case Op::kFSign:
            return {Sign()};
        case Op::kFloor:
            return {Unary(Intrinsic::floor, a)};
        case Op::kCeil:
            return {Unary(Intrinsic::ceil, a)};
        case Op::kRoundEven:
            return {Unary(Intrinsic::roundeven, a)};
        case Op::kFTruncate:
            return {Unary(Intrinsic::trunc, a)};
        case Op::kFract:
            return {b_.CreateFSub(a, Unary(Intrinsic::floor, a))};
        case Op::kFMin:
            return {Smaller(a, c)};
        case Op::kFMax:
            return {Greater(a, c)};
        case Op::kNMin:
            return {UnlessNan(Smaller(a, c), c, a)};
        case Op::kNMax:
            return {UnlessNan(Greater(a, c), c, a)};
        case Op::kSqrt:
            return {Unary(Intrinsic::sqrt, a)};
        case Op::kFrexp:
            return Frexp();
        case Op::kModf:
            return Modf();
        default:
            break;
    }
    if (is_double() && op_ == Op::kRSqrt) {
        return {b_.CreateFDiv(F(1.0), Unary(Intrinsic::sqrt, a))};
    }
    if (is_double() && op_ == Op::kLdexp) {
        return {LdexpDouble(a, in_[1])};
    }
    return {EmitMath()};
}

}  // namespace

Values EmitFloatOp(const PureOp& op) {
    return FloatEmitter(op).Emit();
}

}  // namespace fornax::kernel

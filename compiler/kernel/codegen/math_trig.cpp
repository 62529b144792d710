// Circular functions and their inverses.
#include <llvm/IR/Constants.h>

#include "compiler/kernel/codegen/math_emitter.h"

namespace fornax::kernel {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kHalfPi = kPi / 2;
constexpr double kInversePi = 1 / kPi;
constexpr double kInverseHalfPi = 2 / kPi;

// pi as three f32 numbers, each nearest to what the ones before leave (Cody and Waite). With FMA
// the reduction is good to |x| of about 2^20.
constexpr double kPiHigh = 0x1.921fb6p+1;
constexpr double kPiMiddle = -0x1.777a5cp-24;
constexpr double kPiLow = -0x1.ee59dap-49;

// What the polynomials are fitted for. More than half a period, because the multiple that is
// subtracted is found with f32's precision: at 2^20 it may be off by a fortieth.
constexpr double kSinRange = 1.65;
constexpr double kTanRange = 0.83;

}  // namespace

// x - n * (high + middle + low)
llvm::Value* MathEmitter::SubtractMultiple(V x, V n, double high, double middle, double low) {
    V r = Fma(n, F(-high), x);
    r = Fma(n, F(-middle), r);
    return Fma(n, F(-low), r);
}

llvm::Value* MathEmitter::SinReduced(V r) {
    V square = Mul(r, r);
    V p = Polynomial(square, {-1.66666672e-01, 8.33334867e-03, -1.98426904e-04, 2.76008495e-06,
                              -2.49744438e-08});  // sin
    // At pi/2 the rounding errors could add up to more than 1.
    return Clamp(Fma(Mul(r, square), p, r), -1.0, 1.0);
}

// sin(n * pi + r) = sin(r), negated for odd n. Arguments so large that the reduction has no digits
// left give some value in [-1, 1] thanks to the clamp.
llvm::Value* MathEmitter::Sin(V x) {
    V n = Round(Mul(x, F(kInversePi)));
    V r = Clamp(SubtractMultiple(x, n, kPiHigh, kPiMiddle, kPiLow), -kSinRange, kSinRange);
    V sign = b_.CreateShl(ToInt(n), I(31));
    return FromBits(b_.CreateXor(Bits(SinReduced(r)), sign));
}

// cos((n + 1/2) * pi + r) = -sin(r), negated for odd n.
llvm::Value* MathEmitter::Cos(V x) {
    V n = Round(Fma(x, F(kInversePi), F(-0.5)));
    V r = SubtractMultiple(x, Add(n, F(0.5)), kPiHigh, kPiMiddle, kPiLow);
    r = Clamp(r, -kSinRange, kSinRange);
    V sign = b_.CreateShl(b_.CreateNot(ToInt(n)), I(31));
    return FromBits(b_.CreateXor(Bits(SinReduced(r)), sign));
}

llvm::Value* MathEmitter::Tan(V x) {
    V n = Round(Mul(x, F(kInverseHalfPi)));
    V r = SubtractMultiple(x, n, kPiHigh / 2, kPiMiddle / 2, kPiLow / 2);
    r = Clamp(r, -kTanRange, kTanRange);
    V square = Mul(r, r);
    V sin = Polynomial(
        square, {-1.66666672e-01, 8.33337381e-03, -1.98501846e-04, 2.79863434e-06});  // sin_quarter
    sin = Fma(Mul(r, square), sin, r);
    V cos = Polynomial(square, {4.16666381e-02, -1.38869532e-03, 2.43926752e-05});  // cos_quarter
    cos = Fma(Mul(square, square), cos, Fma(square, F(-0.5), F(1.0)));
    V odd = b_.CreateICmpNE(b_.CreateAnd(ToInt(n), I(1)), I(0));
    return Div(Select(odd, Neg(cos), sin), Select(odd, sin, cos));
}

llvm::Value* MathEmitter::ASinSmall(V s, V z) {
    V p = Polynomial(z, {1.66667521e-01, 7.49531016e-02, 4.54685166e-02, 2.41909660e-02,
                         4.21430245e-02});  // asin
    return Fma(Mul(s, z), p, s);
}

// asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)) above 1/2; beyond 1 the root is NaN.
llvm::Value* MathEmitter::ASin(V x) {
    V a = Abs(x);
    V large = b_.CreateFCmpOGT(a, F(0.5));
    V z = Select(large, Mul(Sub(F(1.0), a), F(0.5)), Mul(a, a));
    V p = ASinSmall(Select(large, Sqrt(z), a), z);
    return CopySign(Select(large, Fma(p, F(-2.0), F(kHalfPi)), p), x);
}

llvm::Value* MathEmitter::ACos(V x) {
    V a = Abs(x);
    V large = b_.CreateFCmpOGT(a, F(0.5));
    V z = Select(large, Mul(Sub(F(1.0), a), F(0.5)), Mul(a, a));
    V p = ASinSmall(Select(large, Sqrt(z), a), z);
    V twice = Add(p, p);
    V near_end = Select(Less(x, F(0.0)), Sub(F(kPi), twice), twice);
    return Select(large, near_end, Sub(F(kHalfPi), CopySign(p, x)));
}

llvm::Value* MathEmitter::ATanSmall(V t) {
    V square = Mul(t, t);
    V p = Polynomial(
        square, {-3.33331525e-01, 1.99937731e-01, -1.42110988e-01, 1.06662951e-01, -7.55300373e-02,
                 4.32223715e-02, -1.63747035e-02, 2.92237359e-03});  // atan
    return Fma(Mul(t, square), p, t);
}

// atan(a) = pi/2 + atan(-1/a) above 1.
llvm::Value* MathEmitter::ATan(V x) {
    V a = Abs(x);
    V large = b_.CreateFCmpOGT(a, F(1.0));
    V p = ATanSmall(Div(Select(large, F(-1.0), a), Select(large, a, F(1.0))));
    return CopySign(Add(Select(large, F(kHalfPi), F(0.0)), p), x);
}

llvm::Value* MathEmitter::ATan2(V y, V x) {
    V ay = Abs(y);
    V ax = Abs(x);
    V flat = Less(ay, ax);
    V low = Select(flat, ay, ax);
    V high = Select(flat, ax, ay);
    // 0/0 counts as 0 and infinity/infinity as 1, which gives the limits that C defines.
    V ratio = Div(low, Select(b_.CreateFCmpOEQ(high, F(0.0)), F(1.0), high));
    V infinity = llvm::ConstantFP::getInfinity(type_);
    V both_infinite =
        b_.CreateAnd(b_.CreateFCmpOEQ(low, infinity), b_.CreateFCmpOEQ(high, infinity));
    ratio = Select(both_infinite, F(1.0), ratio);
    V angle = ATanSmall(ratio);
    angle = Select(b_.CreateFCmpOGT(ay, ax), Sub(F(kHalfPi), angle), angle);
    V left = b_.CreateICmpSLT(Bits(x), I(0));
    angle = Select(left, Sub(F(kPi), angle), angle);
    return CopySign(angle, y);
}

}  // namespace fornax::kernel

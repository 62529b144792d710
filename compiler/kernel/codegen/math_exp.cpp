// Exponentials, logarithms, powers and hyperbolic functions.
#include <cmath>
#include <limits>

#include <llvm/IR/Constants.h>

#include "compiler/kernel/codegen/math_emitter.h"
#include "compiler/kernel/codegen/pure_ops_internal.h"

namespace fornax::kernel {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLog2E = 1.4426950408889634;
constexpr double kLn2 = 0.6931471805599453;
// ln 2 in two parts; the product of the first with any exponent is exact.
constexpr double kLn2High = 0x1.62e4p-1;
constexpr double kLn2Low = kLn2 - kLn2High;

constexpr int32_t kSqrtHalfBits = 0x3f3504f3;
constexpr int32_t kMantissaMask = 0x007fffff;
constexpr double kSmallestNormal = 0x1p-126;

}  // namespace

llvm::Value* MathEmitter::Exp2Fraction(V f) {
    V p = Polynomial(f, {6.93147182e-01, 2.40226477e-01, 5.55035956e-02, 9.61849932e-03,
                         1.33909390e-03, 1.53293775e-04});  // exp2
    return Fma(p, f, F(1.0));
}

// AVX-512 has the parts of a number below and above the point, and takes 2 to the power of the
// latter, for any argument: nothing needs bounds, and infinities and NaN come out right.
llvm::Value* MathEmitter::Exp2Unbounded(V x) {
    V f = FractionAboveFloor(x);
    V p = Polynomial(f, {1.0, 6.93147063e-01, 2.40229085e-01, 5.54861873e-02, 9.67375096e-03,
                         1.24827051e-03, 2.15638080e-04});  // exp2_floor
    return ScaleByFloor(p, x);
}

llvm::Value* MathEmitter::Exp2(V x) {
    if (has_avx512()) {
        return Exp2Unbounded(x);
    }
    x = Clamp(x, -151.0, 129.0);
    V shifted = Add(x, F(kExponentShift));
    return Scale(Exp2Fraction(Sub(x, Sub(shifted, F(kExponentShift)))), shifted);
}

llvm::Value* MathEmitter::ExpBounded(V x) {
    x = Clamp(x, -104.0, 90.0);
    V shifted = Fma(x, F(kLog2E), F(kExponentShift));
    V n = Sub(shifted, F(kExponentShift));
    V r = Fma(n, F(-kLn2High), x);
    r = Fma(n, F(-kLn2Low), r);
    V p = Polynomial(r, {1.0, 9.99999702e-01, 4.99991506e-01, 1.66676581e-01, 4.18976322e-02,
                         8.28932784e-03});  // exp
    return Scale(p, shifted);
}

// With AVX-512 e^x is 2^(x * log2(e)). The error of the product grows with it: by up to 1.4 ULP for
// 1 of |x|, where Vulkan allows 2, beside the 3 of which the rest takes half.
llvm::Value* MathEmitter::Exp(V x) {
    return has_avx512() ? Exp2Unbounded(Mul(x, F(kLog2E))) : ExpBounded(x);
}

MathEmitter::Parts MathEmitter::Split(V x) {
    V denormal = Less(x, F(kSmallestNormal));
    V bits = Bits(Select(denormal, Mul(x, F(0x1p23)), x));
    V shifted = b_.CreateSub(bits, I(kSqrtHalfBits));
    V exponent = b_.CreateSIToFP(b_.CreateAShr(shifted, I(23)), type_);
    exponent = Sub(exponent, Select(denormal, F(23.0), F(0.0)));
    V mantissa = FromBits(b_.CreateAdd(b_.CreateAnd(shifted, I(kMantissaMask)), I(kSqrtHalfBits)));
    return {mantissa, exponent};
}

llvm::Value* MathEmitter::LogSpecials(V x, V result) {
    result = Select(Less(x, F(kInfinity)), result, x);
    V pole = Select(b_.CreateFCmpOEQ(x, F(0.0)), F(-kInfinity), F(kNaN));
    return Select(b_.CreateFCmpOLE(x, F(0.0)), pole, result);
}

// log(mantissa) + correction + exponent * ln 2, small terms first.
llvm::Value* MathEmitter::LogOfParts(Parts parts, V correction) {
    V t = Sub(parts.mantissa, F(1.0));
    V square = Mul(t, t);
    V p = Polynomial(t, {3.33333313e-01, -2.50008196e-01, 2.00012475e-01, -1.66234270e-01,
                         1.42014220e-01, -1.31590858e-01, 1.27622083e-01, -7.63704628e-02});  // log
    V y = correction ? Fma(Mul(square, t), p, correction) : Mul(Mul(square, t), p);
    y = Fma(parts.exponent, F(kLn2Low), y);
    y = Fma(square, F(-0.5), y);
    return Fma(parts.exponent, F(kLn2High), Add(t, y));
}

llvm::Value* MathEmitter::Log(V x) {
    return LogSpecials(x, LogOfParts(Split(x), nullptr));
}

llvm::Value* MathEmitter::Log2(V x) {
    Parts parts = Split(x);
    V t = Sub(parts.mantissa, F(1.0));
    V square = Mul(t, t);
    V p = Polynomial(t, {3.33333313e-01, -2.50008196e-01, 2.00012475e-01, -1.66234270e-01,
                         1.42014220e-01, -1.31590858e-01, 1.27622083e-01, -7.63704628e-02});  // log
    V y = Fma(Mul(square, t), p, Mul(square, F(-0.5)));
    V fraction = Fma(t, F(kLog2E), Mul(y, F(kLog2E)));
    return LogSpecials(x, Add(parts.exponent, fraction));
}

// The product y * log2(x) is needed to 2^-24 absolutely and can be 128 in size, so it is made in
// f64: 1 ULP instead of the hundreds that exp2 of a rounded f32 product has.
llvm::Value* MathEmitter::Pow(V x, V y) {
    Parts parts = Split(x);
    auto wide = [&](V value) { return b_.CreateFPExt(value, double_type_); };
    V t = wide(Sub(parts.mantissa, F(1.0)));
    V p = Polynomial(t, {1.4426950408687162e+00, -7.2134752086868636e-01, 4.8089836137320557e-01,
                         -3.6067367443370235e-01, 2.8853729614755186e-01, -2.4045319928437248e-01,
                         2.0617526586339754e-01, -1.8029957292170384e-01, 1.5877070834620755e-01,
                         -1.4317029477456591e-01, 1.4475413654083771e-01, -1.4277025431351101e-01,
                         7.7280273766685545e-02});  // log2_f64
    V log = Fma(t, p, wide(parts.exponent));
    V product = Mul(wide(y), log);
    auto bound = [&](double value) { return llvm::ConstantFP::get(double_type_, value); };
    product = Min(bound(129.0), Max(bound(-151.0), product));
    V n = Round(product);
    V narrow = b_.CreateFPTrunc(Sub(product, n), type_);
    V shifted = Add(b_.CreateFPTrunc(n, type_), F(kExponentShift));
    V result = Scale(Exp2Fraction(narrow), shifted);
    // 0, infinity and NaN for x: the logarithm is x's own, so the result is 2^(y * +-infinity).
    V infinite = Mul(y, LogSpecials(x, F(kInfinity)));
    V limit = Select(Less(infinite, F(0.0)), F(0.0), infinite);
    V ordinary = b_.CreateAnd(b_.CreateFCmpOGT(x, F(0.0)), Less(x, F(kInfinity)));
    return Select(ordinary, result, limit);
}

// log(1 + u) with the digits that the addition loses put back as correction / (1 + u).
llvm::Value* MathEmitter::Log1p(V u) {
    V sum = Add(F(1.0), u);
    V lost = Select(Less(u, F(1.0)), Sub(u, Sub(sum, F(1.0))), Sub(F(1.0), Sub(sum, u)));
    V result = LogOfParts(Split(sum), Div(lost, sum));
    return LogSpecials(sum, result);
}

// Vulkan has sinh "inherited from (exp(x) - exp(-x)) * 0.5", which is infinite where exp(x) is,
// from 88.72 on, though sinh's own value fits up to 89.41. Likewise cosh.
llvm::Value* MathEmitter::Sinh(V x) {
    V a = Abs(x);
    V square = Mul(x, x);
    V small = Polynomial(square, {1.66667163e-01, 8.33027065e-03, 2.03732227e-04});  // sinh
    small = Fma(Mul(a, square), small, a);
    V exp = ExpBounded(a);
    V large = Sub(Mul(F(0.5), exp), Div(F(0.5), exp));
    return CopySign(Select(Less(a, F(1.0)), small, large), x);
}

llvm::Value* MathEmitter::Cosh(V x) {
    V exp = ExpBounded(Abs(x));
    return Add(Mul(F(0.5), exp), Div(F(0.5), exp));
}

// One quotient of polynomials over all that is not 1 in f32: half of what e^2x and a polynomial for
// small x take, and no digits cancel. Rounding errors could add up to more than 1.
llvm::Value* MathEmitter::Tanh(V x) {
    V a = Min(F(8.5), Abs(x));
    V square = Mul(a, a);
    V over = Polynomial(square, {1.34034365e-01, 3.52216884e-03, 2.10461658e-05,
                                 1.39627474e-08});  // tanh, numerator
    over = Fma(Mul(a, square), over, a);
    V under = Polynomial(square, {1.0, 4.67367619e-01, 2.59781871e-02, 3.32907424e-04,
                                  8.02473323e-07});  // tanh, denominator
    return CopySign(Min(F(1.0), Quotient(over, under)), x);
}

// asinh(a) = log1p(a + a^2 / (1 + sqrt(1 + a^2))); beyond 2^30, where a^2 nears the end of the
// range, log(2a).
llvm::Value* MathEmitter::ASinh(V x) {
    V a = Abs(x);
    V huge = b_.CreateFCmpOGT(a, F(0x1p30));
    V square = Mul(a, a);
    V u = Add(a, Div(square, Add(F(1.0), Sqrt(Add(F(1.0), square)))));
    V result = Log1p(Select(huge, a, u));
    result = Add(result, Select(huge, F(kLn2), F(0.0)));
    return CopySign(result, x);
}

// acosh(1 + t) = log1p(t + sqrt(2t + t^2)).
llvm::Value* MathEmitter::ACosh(V x) {
    V huge = b_.CreateFCmpOGT(x, F(0x1p30));
    V t = Sub(x, F(1.0));
    V u = Add(t, Sqrt(Mul(t, Add(x, F(1.0)))));
    V result = Log1p(Select(huge, x, u));
    result = Add(result, Select(huge, F(kLn2), F(0.0)));
    return Select(Less(x, F(1.0)), F(kNaN), result);
}

llvm::Value* MathEmitter::ATanh(V x) {
    V a = Abs(x);
    V u = Div(Add(a, a), Sub(F(1.0), a));
    return CopySign(Mul(F(0.5), Log1p(u)), x);
}

}  // namespace fornax::kernel

// Transcendental functions of f32 (emit_math.h).
#include "compiler/graph/loop/emit_math.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <spirv/unified1/GLSL.std.450.h>

namespace fornax::graph::loop {

using spv::Op;

namespace {

// Near-minimax coefficients, lowest first; the relative errors of the functions are below 2^-27.
// (e^x - 1 - x) / x^2 for |x| <= 1/2.
constexpr float kExpm1[] = {0.500000039F,   0.16666664F,    0.0416653586F,
                            0.00833357903F, 0.00139961764F, 0.0001984981F};
constexpr float kExpm1Limit = 0.5F;
// (log(1 + x) - x + x^2 / 2) / x^3 for x from -0.3 to 0.42.
constexpr float kLog1p[] = {0.333333261F, -0.250009374F, 0.200018512F, -0.166195073F,
                            0.14184064F,  -0.131811639F, 0.129019457F, -0.0775678363F};
constexpr float kLog1pLow = -0.3F, kLog1pHigh = 0.42F;
// erf(x) / x for |x| <= 4 as a quotient of polynomials in x^2; beyond, erf is 1 for f32. One
// division is cheaper than an exponential and a second polynomial.
constexpr float kErfOver[] = {1.12837917F,     0.185203164F,    0.0543169858F,   0.00384962016F,
                              0.000379612385F, 4.68487186e-06F, -1.32027138e-08F};
constexpr float kErfUnder[] = {1.0F,          0.497465445F,  0.113958465F,
                               0.0154621188F, 0.0013075764F, 6.31114763e-05F};
constexpr float kErfEnd = 4.0F;

}  // namespace

Id MathFunctions::Polynomial(Id x, std::span<const float> coefficients) {
    Id sum = F(coefficients.back());
    for (size_t i = coefficients.size() - 1; i-- > 0;) {
        sum = Fma(sum, x, F(coefficients[i]));
    }
    return sum;
}

Id MathFunctions::Expm1(Id x) {
    const Id square = Binary(Op::OpFMul, x, x);
    const Id small = Fma(square, Polynomial(x, kExpm1), x);
    const Id large = Binary(Op::OpFSub, b_.Ext(b_.F32(), GLSLstd450Exp, {x}), F(1));
    const Id magnitude = b_.Ext(b_.F32(), GLSLstd450FAbs, {x});
    const Id is_small = Test(Op::OpFOrdLessThan, magnitude, F(kExpm1Limit));
    // The square of a small number may be 0: x itself keeps the sign of -0.
    return b_.Select(is_small, b_.Select(Test(Op::OpFOrdEqual, x, F(0)), x, small), large);
}

Id MathFunctions::Log1p(Id x) {
    const Id square = Binary(Op::OpFMul, x, x);
    const Id cube = Binary(Op::OpFMul, Polynomial(x, kLog1p), x);
    const Id small = Fma(square, Binary(Op::OpFAdd, cube, F(-0.5F)), x);
    const Id sum = Binary(Op::OpFAdd, F(1), x);
    const Id logarithm = b_.Ext(b_.F32(), GLSLstd450Log, {sum});
    const Id is_small = b_.And(Test(Op::OpFOrdGreaterThan, x, F(kLog1pLow)),
                               Test(Op::OpFOrdLessThan, x, F(kLog1pHigh)));
    return b_.Select(is_small, b_.Select(Test(Op::OpFOrdEqual, x, F(0)), x, small), logarithm);
}

// From half of the exponential, which is finite wherever the result is.
Id MathFunctions::Hyperbolic(ScalarFunction function, Id x) {
    const Id magnitude = b_.Ext(b_.F32(), GLSLstd450FAbs, {x});
    const Id shifted = Binary(Op::OpFSub, magnitude, F(0.693147181F));
    const Id half = b_.Ext(b_.F32(), GLSLstd450Exp, {shifted});
    const Id other = Binary(Op::OpFDiv, F(0.25F), half);
    if (function == ScalarFunction::kCosh) {
        return Binary(Op::OpFAdd, half, other);
    }
    // The series of (sinh(x) / x - 1) / x^2, of whose error 2^-25 is left at 1.
    constexpr float kSeries[] = {1.0F / 6, 1.0F / 120, 1.0F / 5040, 1.0F / 362880};
    const Id square = Binary(Op::OpFMul, x, x);
    const Id small = Fma(Binary(Op::OpFMul, Polynomial(square, kSeries), square), x, x);
    const Id large = CopySign(Binary(Op::OpFSub, half, other), x);
    return b_.Select(Test(Op::OpFOrdLessThan, magnitude, F(1)), small, large);
}

Id MathFunctions::Erf(Id x) {
    const Id below = b_.Select(Test(Op::OpFOrdGreaterThan, x, F(kErfEnd)), F(kErfEnd), x);
    const Id end = F(-kErfEnd);
    const Id bounded = b_.Select(Test(Op::OpFOrdLessThan, below, end), end, below);  // or NaN
    const Id square = Binary(Op::OpFMul, bounded, bounded);
    const Id over = Binary(Op::OpFMul, bounded, Polynomial(square, kErfOver));
    return Binary(Op::OpFDiv, over, Polynomial(square, kErfUnder));
}

Id MathFunctions::Power(Id x, Id y) {
    const Id f32 = b_.F32();
    const auto ext = [&](uint32_t number, Id a) { return b_.Ext(f32, number, {a}); };
    const auto equal = [&](Id a, Id b) { return Test(Op::OpFOrdEqual, a, b); };
    const auto less = [&](Id a, Id b) { return Test(Op::OpFOrdLessThan, a, b); };
    const Id infinity = F(std::numeric_limits<float>::infinity());
    const Id magnitude = ext(GLSLstd450FAbs, x);
    Id power = b_.Ext(f32, GLSLstd450Pow, {magnitude, y});
    const Id y_negative = less(y, F(0));
    // Powers of 0 and of infinity, and infinite powers.
    power = b_.Select(equal(magnitude, F(0)), b_.Select(y_negative, infinity, F(0)), power);
    power = b_.Select(equal(magnitude, infinity), b_.Select(y_negative, F(0), infinity), power);
    const Id shrinks = Test(Op::OpLogicalNotEqual, less(magnitude, F(1)), y_negative);
    const Id infinite = b_.Select(shrinks, F(0), infinity);
    const Id y_infinite = equal(ext(GLSLstd450FAbs, y), infinity);
    power = b_.Select(y_infinite, b_.Select(equal(magnitude, F(1)), F(1), infinite), power);
    // A negative base gives a negative power if the exponent is odd, and no power if the exponent
    // is not whole.
    const Id whole = b_.Or(equal(ext(GLSLstd450Floor, y), y), y_infinite);
    const Id half = Binary(Op::OpFMul, y, F(0.5F));
    const Id odd =
        b_.And(whole, b_.And(b_.Not(equal(ext(GLSLstd450Floor, half), half)), b_.Not(y_infinite)));
    const Id sign = Test(Op::OpSLessThan, BitsAs(b_.U32(), x), U(0));
    const Id nan = F(std::numeric_limits<float>::quiet_NaN());
    const Id no_power = b_.And(b_.And(less(x, F(0)), b_.Not(whole)), less(magnitude, infinity));
    power = b_.Select(b_.And(sign, odd), Unary(Op::OpFNegate, power), power);
    power = b_.Select(b_.Or(no_power, b_.Or(IsNan(x), IsNan(y))), nan, power);
    return b_.Select(b_.Or(equal(y, F(0)), equal(x, F(1))), F(1), power);
}

Id MathFunctions::Apply(ScalarFunction function, Id x, Id y) {
    const Id f32 = b_.F32();
    const auto ext = [&](uint32_t number, Id a) { return b_.Ext(f32, number, {a}); };
    const auto add = [&](Id a, Id b) { return Binary(Op::OpFAdd, a, b); };
    const auto keep_zero = [&](Id value) {  // with its sign
        return b_.Select(Test(Op::OpFOrdEqual, x, F(0)), x, value);
    };
    const auto div = [&](Id a, Id b) { return Binary(Op::OpFDiv, a, b); };
    switch (function) {
        case ScalarFunction::kExp:
            return ext(GLSLstd450Exp, x);
        case ScalarFunction::kLog:
            return ext(GLSLstd450Log, x);
        case ScalarFunction::kSin:
            return keep_zero(ext(GLSLstd450Sin, x));
        case ScalarFunction::kCos:
            return ext(GLSLstd450Cos, x);
        case ScalarFunction::kTan:
            return keep_zero(ext(GLSLstd450Tan, x));
        case ScalarFunction::kAsin:
            return ext(GLSLstd450Asin, x);
        case ScalarFunction::kAcos:
            return ext(GLSLstd450Acos, x);
        case ScalarFunction::kAtan:
            return ext(GLSLstd450Atan, x);
        case ScalarFunction::kSinh:
        case ScalarFunction::kCosh:
            return Hyperbolic(function, x);
        case ScalarFunction::kTanh:
            return ext(GLSLstd450Tanh, x);
        case ScalarFunction::kAsinh:
            return ext(GLSLstd450Asinh, x);
        case ScalarFunction::kAcosh:
            return ext(GLSLstd450Acosh, x);
        case ScalarFunction::kAtanh:
            return ext(GLSLstd450Atanh, x);
        case ScalarFunction::kAtan2:
            return b_.Ext(f32, GLSLstd450Atan2, {x, y});
        case ScalarFunction::kPow:
            return Power(x, y);
        case ScalarFunction::kSigmoid:
            return div(F(1), add(F(1), ext(GLSLstd450Exp, Unary(Op::OpFNegate, x))));
        case ScalarFunction::kExpm1:
            return Expm1(x);
        case ScalarFunction::kLog1p:
            return Log1p(x);
        case ScalarFunction::kErf:
            return Erf(x);
        default:
            return Reject(fmt::format("{} of f32 is computed on the host", Name(function)));
    }
}

}  // namespace fornax::graph::loop

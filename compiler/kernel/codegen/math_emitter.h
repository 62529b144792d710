// The maths library: transcendental functions of f32 as straight-line LLVM IR.
//
// Each function is a reduction of the argument, a polynomial and a reconstruction, with no branches
// and no tables, so scalar and vector code are the same. They meet Vulkan's "Precision and
// Operation of SPIR-V Instructions" with a wide margin (math_test.cpp prints by how much) and give
// IEEE's results for infinities, NaN, zeros and denormals, except that sin(-0) may be +0. Targets
// without FMA keep Vulkan's precision but not the margin.
//
// Coefficients come from fit_polynomials.py, under the names given beside them.
#pragma once

#include <array>
#include <initializer_list>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include "compiler/kernel/codegen/float_code.h"

namespace fornax::kernel {

class MathEmitter : private FloatCode {
  public:
    using FloatCode::V;

    // `type`: f32 or a vector of it. No fast-math flag of the builder is used.
    MathEmitter(llvm::IRBuilderBase& builder, llvm::Type* type);

    V Exp(V x);
    V Exp2(V x);
    V Log(V x);
    V Log2(V x);
    V Pow(V x, V y);
    V Sinh(V x);
    V Cosh(V x);
    V Tanh(V x);
    V ASinh(V x);
    V ACosh(V x);
    V ATanh(V x);

    V Sin(V x);
    V Cos(V x);
    V Tan(V x);
    V ASin(V x);
    V ACos(V x);
    V ATan(V x);
    V ATan2(V y, V x);

    V RSqrt(V x);
    V Ldexp(V x, V exponent);  // exponent: i32

  private:
    // An f32 number plus this is rounded to an integer, and its lowest bits are that integer with
    // twice the bias of f32 (Scale). Needs rounding to nearest.
    static constexpr double kExponentShift = 0x1.8p23 + 2 * 127;
    // significand * 2^exponent with one rounding, for shifted = exponent + kExponentShift and an
    // integral exponent in [-252, 254].
    V Scale(V significand, V shifted);
    // AVX-512 only: significand * 2^floor(exponent) with one rounding, for any exponent, and
    // x - floor(x), 0 for infinities.
    V ScaleByFloor(V significand, V exponent);
    V MaskBits(V mask);
    V FractionAboveFloor(V x);
    // over / under to about 1 ULP, for an `under` that has a normal reciprocal.
    V Quotient(V over, V under);
    V Exp2Fraction(V fraction);  // 2^f for |f| <= 1/2
    V Exp2Unbounded(V x);        // AVX-512 only
    V ExpBounded(V x);           // e^x for any processor
    // x = mantissa * 2^exponent, sqrt(1/2) <= mantissa < sqrt(2); positive, finite x.
    struct Parts {
        V mantissa;
        V exponent;  // integral float
    };
    Parts Split(V x);
    V LogOfParts(Parts parts, V correction);
    // result, but what a logarithm is for 0, negative numbers, infinity and NaN.
    V LogSpecials(V x, V result);
    V Log1p(V u);       // u > -1
    V SinReduced(V r);  // |r| <= 1.65
    V SubtractMultiple(V x, V n, double high, double middle, double low);
    V ASinSmall(V s, V z);  // asin(s) for z = s^2 <= 1/4
    V ATanSmall(V t);       // |t| <= 1

    bool has_avx512() const { return avx512_; }
    // Calls a masked AVX-512 intrinsic family (128, 256, 512 bits) on values of any length.
    template <typename Call>
    V OnRegisters(std::initializer_list<V> operands, const Call& call);
    // One of AVX-512's estimates with 14 bits.
    V Estimate(V x, std::array<llvm::Intrinsic::ID, 3> of_128_256_512);

    bool avx512_ = false;
};

}  // namespace fornax::kernel

// Shorthand for arithmetic of f32 in LLVM IR, which the maths library is written in.
#pragma once

#include <initializer_list>

#include <llvm/IR/IRBuilder.h>

namespace fornax::kernel {

// Values are all of `type`, f32 or a vector of it, or of as many i32. As long as one lives, the
// builder has no fast-math flags.
class FloatCode {
  public:
    using V = llvm::Value*;

    FloatCode(llvm::IRBuilderBase& builder, llvm::Type* type);
    ~FloatCode();
    FloatCode(const FloatCode&) = delete;
    FloatCode& operator=(const FloatCode&) = delete;

    V F(double value) const;
    V I(int64_t value) const;
    V Add(V a, V b) { return b_.CreateFAdd(a, b); }
    V Sub(V a, V b) { return b_.CreateFSub(a, b); }
    V Mul(V a, V b) { return b_.CreateFMul(a, b); }
    V Div(V a, V b) { return b_.CreateFDiv(a, b); }
    V Neg(V a) { return b_.CreateFNeg(a); }
    V Fma(V a, V b, V c);  // fused where the target can
    V Sqrt(V a);
    V Abs(V a);
    V CopySign(V magnitude, V sign);
    V Round(V a);  // to nearest even
    // As x86's minps and maxps: the second operand if either is NaN.
    V Min(V a, V b) { return b_.CreateSelect(b_.CreateFCmpOLT(a, b), a, b); }
    V Max(V a, V b) { return b_.CreateSelect(b_.CreateFCmpOGT(a, b), a, b); }
    V Clamp(V x, double low, double high) { return Min(F(high), Max(F(low), x)); }  // keeps NaN
    V Select(V condition, V a, V b) { return b_.CreateSelect(condition, a, b); }
    V Less(V a, V b) { return b_.CreateFCmpOLT(a, b); }
    V Bits(V a) { return b_.CreateBitCast(a, int_type_); }
    V FromBits(V a) { return b_.CreateBitCast(a, type_); }
    V ToInt(V a);  // toward zero; any value out of range
    // low-order coefficient first
    V Polynomial(V x, std::initializer_list<double> coefficients);

  protected:
    llvm::IRBuilderBase& b_;
    llvm::FastMathFlags saved_flags_;
    llvm::Type* type_;
    llvm::Type* int_type_;
    llvm::Type* double_type_;
};

}  // namespace fornax::kernel

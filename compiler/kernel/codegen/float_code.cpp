#include "compiler/kernel/codegen/float_code.h"

#include <cassert>

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include "compiler/kernel/codegen/pure_ops_internal.h"

namespace fornax::kernel {

namespace Intrinsic = llvm::Intrinsic;

FloatCode::FloatCode(llvm::IRBuilderBase& builder, llvm::Type* type)
    : b_(builder),
      saved_flags_(builder.getFastMathFlags()),
      type_(type),
      int_type_(SameShape(type, builder.getInt32Ty())),
      double_type_(SameShape(type, builder.getDoubleTy())) {
    assert(type->getScalarType()->isFloatTy());
    b_.setFastMathFlags(llvm::FastMathFlags());
}

FloatCode::~FloatCode() {
    b_.setFastMathFlags(saved_flags_);
}

llvm::Value* FloatCode::F(double value) const {
    return llvm::ConstantFP::get(type_, value);
}

llvm::Value* FloatCode::I(int64_t value) const {
    return llvm::ConstantInt::get(int_type_, static_cast<uint64_t>(value), /*isSigned=*/true);
}

llvm::Value* FloatCode::Fma(V a, V b, V c) {
    return b_.CreateIntrinsic(Intrinsic::fmuladd, {a->getType()}, {a, b, c});
}

llvm::Value* FloatCode::Sqrt(V a) {
    return b_.CreateUnaryIntrinsic(Intrinsic::sqrt, a);
}

llvm::Value* FloatCode::Abs(V a) {
    return b_.CreateUnaryIntrinsic(Intrinsic::fabs, a);
}

llvm::Value* FloatCode::CopySign(V magnitude, V sign) {
    return b_.CreateBinaryIntrinsic(Intrinsic::copysign, magnitude, sign);
}

llvm::Value* FloatCode::Round(V a) {
    return b_.CreateUnaryIntrinsic(Intrinsic::roundeven, a);
}

llvm::Value* FloatCode::ToInt(V a) {
    return AnyValue(b_, b_.CreateFPToSI(a, int_type_));
}

// Horner's scheme: the fewest operations. Latency hides behind the other vectors in flight.
llvm::Value* FloatCode::Polynomial(V x, std::initializer_list<double> coefficients) {
    auto constant = [&](double value) { return llvm::ConstantFP::get(x->getType(), value); };
    V sum = constant(coefficients.end()[-1]);
    for (size_t i = coefficients.size() - 1; i-- > 0;) {
        sum = Fma(sum, x, constant(coefficients.begin()[i]));
    }
    return sum;
}

}  // namespace fornax::kernel

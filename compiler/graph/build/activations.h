// Elementwise functions that are more than one primitive.
//
// Narrow floats are widened to f32 once and rounded at the end.
#pragma once

#include "compiler/graph/build/builder.h"

namespace fornax::graph {

// f16, bf16 and narrower: types that sums and long formulas are not computed in.
bool IsNarrowFloat(ElementType type);
// f32 for narrow floats, else the type.
ElementType ComputeType(ElementType type);
// The function in the compute type, rounded to the value's type.
template <typename Function>
Val Widened(Val value, const Function& function) {
    return Cast(function(Cast(value, ComputeType(value.element()))), value.element());
}

Val Relu(Val x);
Val Clip(Val x, Val low, Val high);  // either may be nothing
Val LeakyRelu(Val x, double alpha);
Val PRelu(Val x, Val slope);
Val Elu(Val x, double alpha);
Val Celu(Val x, double alpha);
Val Selu(Val x, double alpha, double gamma);
Val Softplus(Val x);
Val Softsign(Val x);
Val HardSigmoid(Val x, double alpha, double beta);
Val HardSwish(Val x);
Val Swish(Val x, double alpha);
Val Mish(Val x);
Val Gelu(Val x, bool tanh);  // a composite
Val ThresholdedRelu(Val x, double alpha);
Val Shrink(Val x, double bias, double lambda);
// By result: whether an element is infinite of these signs.
Val IsInf(Val x, bool negative, bool positive);

}  // namespace fornax::graph

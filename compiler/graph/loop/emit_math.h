// Transcendental functions of f32, from those that every device has.
#pragma once

#include <span>

#include "compiler/graph/loop/emit_values.h"

namespace fornax::graph::loop {

class MathFunctions : ValueOps {
  public:
    explicit MathFunctions(ModuleCode& module) : ValueOps(module) {}

    // A function of f32; `y` counts where it has two arguments.
    Id Apply(ScalarFunction function, Id x, Id y);

  private:
    Id Polynomial(Id x, std::span<const float> coefficients);
    Id Expm1(Id x);
    Id Log1p(Id x);
    Id Erf(Id x);
    Id Hyperbolic(ScalarFunction function, Id x);
    Id Power(Id x, Id y);
};

}  // namespace fornax::graph::loop

// Scalar functions of integers, bools and floats, and combinations; emit_math.h has the
// transcendental ones.
#pragma once

#include <span>

#include "compiler/graph/loop/emit_math.h"
#include "compiler/graph/loop/emit_values.h"

namespace fornax::graph::loop {

class ScalarFunctions : ValueOps {
  public:
    explicit ScalarFunctions(ModuleCode& module) : ValueOps(module), math_(module) {}

    // `type` is that of the last argument.
    Id Apply(ScalarFunction function, ElementType type, std::span<const Id> arguments);
    // A reduction's value with one more, which is `b`; integers wrap at the end only.
    Id CombineValues(Combine combine, ElementType type, Id a, Id b);

  private:
    Id IntegerFunction(ScalarFunction function, ElementType type, std::span<const Id> arguments);
    Id IntegerQuotient(ScalarFunction function, ElementType type, Id a, Id b);
    Id IntegerPower(ElementType type, Id a, Id b);
    Id Shift(ScalarFunction function, ElementType type, Id a, Id b);
    Id FloatFunction(ScalarFunction function, ElementType type, std::span<const Id> arguments);
    Id Least(Id a, Id b);
    Id Greatest(Id a, Id b);
    Id Remainder(Id a, Id b);

    MathFunctions math_;
};

}  // namespace fornax::graph::loop

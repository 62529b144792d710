// Integer, float, bool and matrix operations.
#pragma once

#include "compiler/kernel/fuzz/generator_values.h"

namespace fornax::kernel::fuzz {

class VariableAccess;

class ArithmeticGenerator : GeneratorPart {
  public:
    ArithmeticGenerator(GeneratorState& state, ValueGenerator& values, VariableAccess& access)
        : GeneratorPart(state), values_(values), access_(access) {}

    Id IntegerValue(ValueType type);
    Id FloatValue(ValueType type);
    Id MatrixValue(ValueType type, uint32_t depth);
    Id BoolValue(ValueType type);
    Id Small(ValueType type, Id value);

  private:
    Id Glsl32(ValueType type);
    Id BitField(ValueType type);
    Id ExactFloat(ValueType type);
    Id FreeFloat(ValueType type);
    Id MatrixProduct(ValueType type);

    ValueGenerator& values_;
    VariableAccess& access_;
};

}  // namespace fornax::kernel::fuzz

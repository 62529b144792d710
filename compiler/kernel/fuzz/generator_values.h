// Values by type: constants, picks, composites, conversions. Operands are values again, and what is
// loaded has an index that is a value: this, ArithmeticGenerator and VariableAccess name each
// other.
#pragma once

#include "compiler/kernel/fuzz/generator_state.h"

namespace fornax::kernel::fuzz {

class ArithmeticGenerator;
class VariableAccess;

class ValueGenerator : GeneratorPart {
  public:
    ValueGenerator(GeneratorState& state, ArithmeticGenerator& arithmetic, VariableAccess& access)
        : GeneratorPart(state), arithmetic_(arithmetic), access_(access) {}

    Id Value(ValueType type, uint32_t depth);
    Id Any(ValueType type) { return Value(type, state_.depth); }
    Id Condition();         // a bool
    Id UniformCondition();  // one that is the same for the whole workgroup
    Id UniformWord();
    Id Masked(ValueType type, uint64_t mask);
    Id Word(ValueType type, Id value);  // any value folded to 32 bits
    Id Observable(ValueType type, Id value);
    Id Observable(ValueType type);
    Id Fit(ValueType type, Id value);  // floats from foreign memory

  private:
    Id Leaf(ValueType type);
    Id Construct(ValueType type);
    Id Component(ValueType type);
    Id Shuffled(ValueType type);
    Id Selected(ValueType type);
    Id Converted(ValueType type);

    ArithmeticGenerator& arithmetic_;
    VariableAccess& access_;
};

}  // namespace fornax::kernel::fuzz

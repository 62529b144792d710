// Atomics on buffers and workgroup memory, and values exchanged between invocations.
#pragma once

#include "compiler/kernel/fuzz/generator_values.h"
#include "compiler/kernel/fuzz/generator_variables.h"

namespace fornax::kernel::fuzz {

class AtomicStatements : GeneratorPart {
  public:
    AtomicStatements(GeneratorState& state, ValueGenerator& values, VariableAccess& access)
        : GeneratorPart(state), values_(values), access_(access) {}

    void OwnAtomic();
    void CounterAtomic();
    void Exchange();
    void Tally();

  private:
    ValueGenerator& values_;
    VariableAccess& access_;
};

}  // namespace fornax::kernel::fuzz

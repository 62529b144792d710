// Statements that load, store and copy.
#pragma once

#include "compiler/kernel/fuzz/generator_values.h"
#include "compiler/kernel/fuzz/generator_variables.h"

namespace fornax::kernel::fuzz {

class MemoryStatements : GeneratorPart {
  public:
    MemoryStatements(GeneratorState& state, ValueGenerator& values, VariableAccess& access)
        : GeneratorPart(state), values_(values), access_(access) {}

    void LoadStatement();
    void StoreStatement();
    void CopyStatement();

  private:
    ValueGenerator& values_;
    VariableAccess& access_;
};

}  // namespace fornax::kernel::fuzz

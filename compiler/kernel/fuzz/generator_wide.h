// What only some drivers have: pointers chosen at run time, atomics of other types, images, dot
// products of integers.
#pragma once

#include "compiler/kernel/fuzz/generator_declarations.h"
#include "compiler/kernel/fuzz/generator_types.h"
#include "compiler/kernel/fuzz/generator_values.h"
#include "compiler/kernel/fuzz/generator_variables.h"

namespace fornax::kernel::fuzz {

class WideStatements : GeneratorPart {
  public:
    WideStatements(GeneratorState& state,
                   MemoryTypes& types,
                   Declarations& declarations,
                   ValueGenerator& values,
                   VariableAccess& access)
        : GeneratorPart(state),
          types_(types),
          declarations_(declarations),
          values_(values),
          access_(access) {}

    bool WideStatement();

  private:
    void ChosenPointer();
    void OwnWideAtomic();
    void WideTally();
    void ImageStatement();
    void DotStatement();
    void DeclareAtomic(Kind kind, bool adds);
    Id AtomicOperand(ValueType type);
    Id AnyAtomic(ValueType type, Id pointer, spv::Scope scope);
    const Variable& WideView(Kind kind);

    MemoryTypes& types_;
    Declarations& declarations_;
    ValueGenerator& values_;
    VariableAccess& access_;
};

}  // namespace fornax::kernel::fuzz

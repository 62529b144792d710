// The generator of random modules (generator_state.h lists its parts): functions, and main.
#pragma once

#include "compiler/kernel/fuzz/generator_control.h"

namespace fornax::kernel::fuzz {

class Generator : GeneratorPart {
  public:
    explicit Generator(GeneratorState& state) : GeneratorPart(state) {}

    RandomModule Run();

  private:
    void MakeFunction(uint32_t number);
    void MakeMain();
    void FillFunction(uint32_t budget);
    void DeclareLocals(uint32_t count);
    Id GlobalIndex();

    MemoryTypes types_{state_};
    Declarations declarations_{state_, types_};
    ValueGenerator values_{state_, arithmetic_, access_};
    ArithmeticGenerator arithmetic_{state_, values_, access_};
    VariableAccess access_{state_, values_};
    MemoryStatements memory_{state_, values_, access_};
    AtomicStatements atomics_{state_, values_, access_};
    WideStatements wide_{state_, types_, declarations_, values_, access_};
    SubgroupStatements subgroups_{state_, values_, arithmetic_};
    StatementGenerator statements_{state_, values_, access_, memory_, atomics_, wide_, subgroups_};
};

}  // namespace fornax::kernel::fuzz

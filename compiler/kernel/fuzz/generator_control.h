// Statements and structured control flow; generator_barriers.cpp has invocations that part between
// barriers.
#pragma once

#include "compiler/kernel/fuzz/generator_atomics.h"
#include "compiler/kernel/fuzz/generator_memory.h"
#include "compiler/kernel/fuzz/generator_subgroups.h"
#include "compiler/kernel/fuzz/generator_values.h"
#include "compiler/kernel/fuzz/generator_variables.h"
#include "compiler/kernel/fuzz/generator_wide.h"

namespace fornax::kernel::fuzz {

class StatementGenerator : GeneratorPart {
  public:
    StatementGenerator(GeneratorState& state,
                       ValueGenerator& values,
                       VariableAccess& access,
                       MemoryStatements& memory,
                       AtomicStatements& atomics,
                       WideStatements& wide,
                       SubgroupStatements& subgroups)
        : GeneratorPart(state),
          values_(values),
          access_(access),
          memory_(memory),
          atomics_(atomics),
          wide_(wide),
          subgroups_(subgroups) {}

    void Statements(uint32_t budget, uint32_t depth);

  private:
    enum class Way : uint8_t { kReturn, kBreak, kContinue };
    void Statement(uint32_t budget, uint32_t depth);
    void PureStatement();
    void IfStatement(uint32_t budget, uint32_t depth);
    void SwitchStatement(uint32_t budget, uint32_t depth);
    void LoopStatement(uint32_t budget, uint32_t depth);
    void LeaveStatement();
    void ReturnStatement();
    void CallStatement();
    Id Call(const Function& function);
    bool CanLeave() const;
    Target NewTarget(uint32_t max_phis);
    std::vector<Id> PhiValues(const Target& target);
    void Jump(Target& target);
    void Begin(Target& target);
    void BackToUniform(bool was_uniform);
    void NeverBarrier();
    void PartStatement(uint32_t budget, uint32_t depth);
    void Leave(Way way);
    void Return();
    Around* InnermostTarget();
    Around* InnermostLoop();

    ValueGenerator& values_;
    VariableAccess& access_;
    MemoryStatements& memory_;
    AtomicStatements& atomics_;
    WideStatements& wide_;
    SubgroupStatements& subgroups_;
};

}  // namespace fornax::kernel::fuzz

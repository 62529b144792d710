// Operations between lanes.
#pragma once

#include "compiler/kernel/fuzz/generator_arithmetic.h"
#include "compiler/kernel/fuzz/generator_values.h"

namespace fornax::kernel::fuzz {

class SubgroupStatements : GeneratorPart {
  public:
    SubgroupStatements(GeneratorState& state,
                       ValueGenerator& values,
                       ArithmeticGenerator& arithmetic)
        : GeneratorPart(state), values_(values), arithmetic_(arithmetic) {}

    void SubgroupStatement();

  private:
    void ShuffleStatement();
    void VoteStatement();
    void ReduceStatement();
    Id Group(Op op, ValueType type, std::initializer_list<uint32_t> operands);
    Id LaneIndex();
    Id FromLane(ValueType type, Id value, Id lane, Id read);

    ValueGenerator& values_;
    ArithmeticGenerator& arithmetic_;
};

}  // namespace fornax::kernel::fuzz

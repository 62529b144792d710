// Execution modes: the workgroup's size, what float arithmetic may do, derivative groups.
#pragma once

#include "compiler/kernel/spirv/translation.h"

namespace fornax::kernel::spirv {

class ExecutionModes : TranslationPart {
  public:
    explicit ExecutionModes(Translation& code) : TranslationPart(code) {}

    Status ReadExecutionModes(const Inst& entry_point);
    Status ReadFloatModes(const Inst& entry_point);
    static bool HasFloatModes(spv::Op op);

  private:
    Status FloatControl(const Inst& inst);
    Status SetDerivativeGroup(const Inst& inst, DerivativeGroup group);
    Status ArrangeWorkgroup(const Inst& entry_point);
};

}  // namespace fornax::kernel::spirv

// Differences between the invocations of a quad.
#pragma once

#include "compiler/kernel/spirv/invocation_code.h"
#include "compiler/kernel/spirv/values.h"

namespace fornax::kernel::spirv {

class Derivatives : TranslationPart {
  public:
    Derivatives(Translation& code, InvocationCode& invocation, Values& values)
        : TranslationPart(code), invocation_(invocation), values_(values) {}

    Status Derivative(const Inst& inst);
    Status NeedsDerivatives(const Inst& inst) const;
    ir::ValueId Difference(ir::ValueId value, bool along_y, bool coarse);

  private:
    InvocationCode& invocation_;
    Values& values_;
};

}  // namespace fornax::kernel::spirv

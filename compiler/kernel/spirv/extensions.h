// Small extensions of SPIR-V, each a few lines, and instructions that do nothing.
#pragma once

#include "compiler/kernel/spirv/large_values.h"
#include "compiler/kernel/spirv/values.h"

namespace fornax::kernel::spirv {

class Extensions : TranslationPart {
  public:
    Extensions(Translation& code, Values& values, LargeValues& large)
        : TranslationPart(code), values_(values), large_(large) {}

    Status Ignore(const Inst&) { return OkStatus(); }
    Status Undefined(const Inst& inst);
    Status Expect(const Inst& inst);
    Status ReadClock(const Inst& inst);
    Status Fma(const Inst& inst);
    Status CompositeReplicate(const Inst& inst);
    Status FragmentOnly(const Inst& inst);

  private:
    Values& values_;
    LargeValues& large_;
};

}  // namespace fornax::kernel::spirv

// DebugPrintf of the extended instruction set NonSemantic.DebugPrintf.
#pragma once

#include <string>

#include "compiler/kernel/spirv/values.h"

namespace fornax::kernel::spirv {

class PrintfCode : TranslationPart {
  public:
    PrintfCode(Translation& code, Values& values) : TranslationPart(code), values_(values) {}

    bool IsDebugPrintf(const Inst& inst) const;
    Status DebugPrintf(const Inst& inst);

  private:
    Status PrintfValue(const Inst& inst, uint32_t id, std::string& letters, Tuple& words);

    Values& values_;
};

}  // namespace fornax::kernel::spirv

// The instructions that load, store and copy.
#pragma once

#include "compiler/kernel/spirv/heaps.h"
#include "compiler/kernel/spirv/large_values.h"
#include "compiler/kernel/spirv/place_access.h"
#include "compiler/kernel/spirv/place_code.h"
#include "compiler/kernel/spirv/values.h"

namespace fornax::kernel::spirv {

class MemoryInstructions : TranslationPart {
  public:
    MemoryInstructions(Translation& code,
                       PlaceCode& places,
                       Heaps& heaps,
                       PlaceAccess& access,
                       Values& values,
                       LargeValues& large)
        : TranslationPart(code),
          places_(places),
          heaps_(heaps),
          access_(access),
          values_(values),
          large_(large) {}

    Status Load(const Inst& inst);
    Status Store(const Inst& inst);
    Status CopyMemory(const Inst& inst);
    Status CopyMemorySized(const Inst& inst);

  private:
    size_t SecondMemoryOperands(const Inst& inst, size_t index) const;

    PlaceCode& places_;
    Heaps& heaps_;
    PlaceAccess& access_;
    Values& values_;
    LargeValues& large_;
};

}  // namespace fornax::kernel::spirv

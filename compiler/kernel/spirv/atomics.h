// Atomics on buffers, texels, workgroup memory and device addresses.
#pragma once

#include "compiler/kernel/spirv/heaps.h"
#include "compiler/kernel/spirv/images.h"
#include "compiler/kernel/spirv/place_access.h"
#include "compiler/kernel/spirv/place_code.h"
#include "compiler/kernel/spirv/values.h"

namespace fornax::kernel::spirv {

class Atomics : TranslationPart {
  public:
    Atomics(Translation& code,
            PlaceCode& places,
            Heaps& heaps,
            PlaceAccess& access,
            Values& values,
            Images& images)
        : TranslationPart(code),
          places_(places),
          heaps_(heaps),
          access_(access),
          values_(values),
          images_(images) {}

    Status GuardedAtomic(const Inst& inst);
    Status TexelPointer(const Inst& inst);

  private:
    Status Atomic(const Inst& inst);

    PlaceCode& places_;
    Heaps& heaps_;
    PlaceAccess& access_;
    Values& values_;
    Images& images_;
};

}  // namespace fornax::kernel::spirv

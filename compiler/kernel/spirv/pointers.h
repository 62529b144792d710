// Access chains, and pointers as values: a pointer that is chosen at run time or stored becomes a
// few numbers (Type::pointer_scalars), and a place again where it is used.
#pragma once

#include "compiler/kernel/spirv/heaps.h"
#include "compiler/kernel/spirv/place_access.h"
#include "compiler/kernel/spirv/place_code.h"
#include "compiler/kernel/spirv/values.h"
#include "compiler/kernel/spirv/variables.h"

namespace fornax::kernel::spirv {

class Pointers : TranslationPart {
  public:
    Pointers(Translation& code,
             PlaceCode& places,
             Heaps& heaps,
             PlaceAccess& access,
             Values& values,
             Variables& variables)
        : TranslationPart(code),
          places_(places),
          heaps_(heaps),
          access_(access),
          values_(values),
          variables_(variables) {}

    Status AccessChain(const Inst& inst);
    Status PtrAccessChain(const Inst& inst);
    Status BufferPointer(const Inst& inst);
    Status PointerToInteger(const Inst& inst);
    Status IntegerToPointer(const Inst& inst);
    Status ComparePointers(const Inst& inst);
    Status ArrayLength(const Inst& inst);
    Status CopyObject(const Inst& inst);

  private:
    Status DefineStepped(const Inst& inst, Pointer pointer);
    Result<uint64_t> StrideOf(const Inst& inst, const Type& pointer, uint32_t pointee);
    Result<ir::ValueId> PointerNumber(const Inst& inst, uint32_t id);
    Status Step(const Inst& inst, Pointer& pointer, uint32_t index_id);
    Status StepBytes(const Inst& inst, Pointer& pointer, const Type& type, uint32_t index_id);
    Status AddIndex(const Inst& inst, Pointer& pointer, uint32_t index_id, uint64_t stride);

    PlaceCode& places_;
    Heaps& heaps_;
    PlaceAccess& access_;
    Values& values_;
    Variables& variables_;
};

}  // namespace fornax::kernel::spirv

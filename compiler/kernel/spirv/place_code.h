// Where pointers lead: byte offsets, slots of private variables, the parts of what is pointed to.
#pragma once

#include "compiler/kernel/spirv/translation.h"

namespace fornax::kernel::spirv {

class PlaceCode : TranslationPart {
  public:
    explicit PlaceCode(Translation& code) : TranslationPart(code) {}

    ir::Type OffsetType(const Pointer& pointer) const;
    ir::ValueId ByteOffset(const Pointer& pointer, uint64_t constant);
    uint64_t AlignAt(const Pointer& pointer, uint64_t at) const;
    void AddRuntimeIndex(Pointer& pointer, ir::ValueId index, uint64_t stride);
    Status Retype(const Inst& inst, Pointer& pointer, uint32_t type);
    Pointer PartOf(const Pointer& whole, const Type& type, uint32_t index);
    Pointer ElementOf(const Pointer& whole, const Type& type, ir::ValueId index);
    Result<Pointer> PartAt(const Inst& inst, Pointer part, std::span<const uint32_t> indices);
    uint64_t SlotsOfLeaf(const Type& type, uint32_t leaf) const;
    ir::ValueId SlotIndex(const Pointer& pointer, uint32_t leaf, uint64_t constant);
};

}  // namespace fornax::kernel::spirv

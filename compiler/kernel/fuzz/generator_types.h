// Types of variables: values in memory, arrays and structures with layouts.
#pragma once

#include "compiler/kernel/fuzz/generator_state.h"

namespace fornax::kernel::fuzz {

// How many values a variable of the type has, about.
uint32_t Leaves(const MemoryType& type);

class MemoryTypes : GeneratorPart {
  public:
    explicit MemoryTypes(GeneratorState& state) : GeneratorPart(state) {}

    MemoryType PlainType(uint32_t depth);
    MemoryType ValueInMemory(ValueType type, bool packed, bool has_layout);
    MemoryType LaidOutType(uint32_t depth, bool packed, uint32_t room);
    MemoryType LaidOutStruct(uint32_t members, uint32_t depth, bool packed, uint32_t room);
    MemoryType ArrayOf(MemoryType element, uint32_t count, bool has_layout, bool packed);
    void FinishStruct(MemoryType& type, bool has_layout, bool packed, uint32_t room);
};

}  // namespace fornax::kernel::fuzz

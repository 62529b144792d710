// Conversions between element types, and elements in memory. Types that the device does not
// compute in are taken apart and rounded with integer arithmetic, as ir/element_type.cpp defines.
#pragma once

#include "compiler/graph/loop/emit_values.h"

namespace fornax::graph::loop {

class Conversions : ValueOps {
  public:
    explicit Conversions(ModuleCode& module) : ValueOps(module) {}

    Id Convert(Id value, ElementType from, ElementType to, Overflow overflow, Rounding rounding);
    Id CodeOf(Id value, ElementType type);  // the bits of the element, in u32 or i64
    Id FromCode(Id code, ElementType type);

    // --- elements in memory
    Id StorageType(ElementType type);
    Id FromStorage(Id stored, ElementType type);
    Id ToStorage(Id value, ElementType type);

  private:
    Id ConvertFloat(Id value,
                    ElementType from,
                    ElementType to,
                    Overflow overflow,
                    Rounding rounding);
    Id Saturated(Id value);
    Id FloatToInteger(Id value, ElementType from, ElementType to);
    Id IntegerToFloat(Id value, ElementType from, ElementType to);
    Id F64ToF32(Id value, Overflow overflow, Rounding rounding, bool to_odd);
    Id RoundF32(Id value, ElementType to, Overflow overflow, Rounding rounding);
    // The code of an f32 in a narrower type, rounded; and back.
    Id Encode(Id value, ElementType to, Overflow overflow, Rounding rounding);
    Id Decode(Id code, ElementType from);
    Id EncodeE8M0(Id value, Overflow overflow, Rounding rounding);
};

}  // namespace fornax::graph::loop

// Variables: every one becomes a place.
#pragma once

#include <optional>
#include <unordered_map>

#include "compiler/kernel/spirv/heaps.h"
#include "compiler/kernel/spirv/place_access.h"
#include "compiler/kernel/spirv/values.h"

namespace fornax::kernel::spirv {

class Variables : TranslationPart {
  public:
    Variables(Translation& code, Heaps& heaps, PlaceAccess& access, Values& values)
        : TranslationPart(code), heaps_(heaps), access_(access), values_(values) {}

    Status GlobalVariables();
    Status Variable(const Inst& inst);
    Status FunctionVariable(const Inst& inst);
    std::optional<uint64_t> WorkgroupStride(uint32_t element);

  private:
    Result<ir::Binding> FindBinding(const Inst& inst);
    Status BufferVariable(const Inst& inst, const Type& type);
    Status ImageVariable(const Inst& inst, const Type& type);
    Status WorkgroupVariable(const Inst& inst, const Type& type);
    const Type* WorkgroupType(const Inst& inst) const;
    uint64_t AliasedWorkgroupBytes();
    Result<Pointer> PrivateVariable(const Inst& inst, const Type& type);

    Heaps& heaps_;
    PlaceAccess& access_;
    Values& values_;
    std::optional<uint64_t> aliased_workgroup_start_;
    // Once they are asked for: by an element's type, the strides of WorkgroupStride.
    std::optional<std::unordered_map<uint32_t, uint64_t>> workgroup_strides_;
};

}  // namespace fornax::kernel::spirv

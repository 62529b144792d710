// Large values: what holds arrays of hundreds of scalars is kept in a private variable of its own
// and copied by loops, part by part, so that compiling takes no longer for larger arrays.
#pragma once

#include <unordered_map>
#include <vector>

#include "compiler/kernel/spirv/place_access.h"
#include "compiler/kernel/spirv/place_code.h"
#include "compiler/kernel/spirv/values.h"

namespace fornax::kernel::spirv {

class LargeValues : TranslationPart {
  public:
    LargeValues(Translation& code, PlaceCode& places, PlaceAccess& access, Values& values)
        : TranslationPart(code), places_(places), access_(access), values_(values) {}

    bool IsLarge(const Type& type) const;
    Result<Pointer> NewLargePlace(const Inst& inst, const Type& type);
    void FreeLargePlaces(const Frame& frame);
    Status LoadLarge(const Inst& inst, const Pointer& from);
    Status StoreValue(const Inst& inst, const Pointer& to, uint32_t id);
    Status CopyLarge(const Inst& inst, const Pointer& to, const Pointer& from);
    Status ExtractLarge(const Inst& inst, const Pointer& whole);
    Status ConstructLarge(const Inst& inst, const Type& type);
    Status InsertLarge(const Inst& inst, const Pointer& whole);

  private:
    bool IsOnlyStored(const Inst& load) const;
    Status CopyPlace(const Inst& inst, const Pointer& to, const Pointer& from);
    template <typename Body>
    void ForEach(uint32_t count, Body&& body);

    PlaceCode& places_;
    PlaceAccess& access_;
    Values& values_;
    std::unordered_map<uint32_t, std::vector<Pointer>> free_places_;  // by type
};

}  // namespace fornax::kernel::spirv

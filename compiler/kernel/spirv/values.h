// What SPIR-V's ids are: results of instructions, constants, variables of module scope. A value
// that is used outside of the IR block that makes it gets a spill slot (spill_slots.cpp).
#pragma once

#include <map>
#include <vector>

#include "compiler/kernel/spirv/place_access.h"

namespace fornax::kernel::spirv {

class Variables;

// A variable of module scope is declared by its first use, and its initialiser uses values: this
// and Variables name each other.
class Values : TranslationPart {
  public:
    Values(Translation& code, PlaceAccess& access, Variables& variables)
        : TranslationPart(code), access_(access), variables_(variables) {}

    Result<Value> Use(const Inst& user, uint32_t id);
    Result<Tuple> UseTuple(const Inst& user, uint32_t id);  // of one scalar at least
    Result<Tuple> UseParts(const Inst& user, uint32_t id);  // may be of an empty type
    Result<Pointer> UsePointer(const Inst& user, uint32_t id);
    Result<ir::ValueId> UseScalar(const Inst& user, uint32_t id);
    Result<Tuple> UsePlace(const Inst& inst, uint32_t id);
    Result<const Type*> ValueType(const Inst& user, uint32_t id);
    Status Define(const Inst& inst, Tuple scalars);
    Status DefinePointer(const Inst& inst, Pointer pointer);
    Status DefineLarge(const Inst& inst, Pointer place);
    bool HasLargeValue(uint32_t id) const;
    void StoreSpilled(const Value& definition, const std::vector<uint32_t>& slots);
    void InsertSpillStores();

  private:
    Status SetValue(const Inst& inst, Value value);
    Value Rescue(uint32_t id, const Value& value);

    PlaceAccess& access_;
    Variables& variables_;
    // Stores of values to their spill slots, by the IR block that makes the value.
    struct SpillStore {
        ir::ValueId value;
        uint32_t local = 0;
    };
    std::map<uint32_t, std::vector<SpillStore>> spill_stores_;
};

}  // namespace fornax::kernel::spirv

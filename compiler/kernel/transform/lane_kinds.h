// How far the lanes of a vector probably lie apart, as passes can tell that do not know the vector.
#pragma once

#include <vector>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

enum class Lanes : uint8_t {
    kUnknown,
    kSame,
    kNear,   // by little that is known when code is emitted: an index
    kApart,  // by anything
};

class LaneKinds {
  public:
    explicit LaneKinds(const ir::Kernel& kernel)
        : kernel_(kernel),
          kinds_(kernel.num_values(), Lanes::kUnknown),
          same_as_(kernel.num_values()) {}

    // kApart for values that the kernel did not have when this was made.
    Lanes Of(ir::ValueId value);
    void Set(ir::ValueId value, Lanes kind) { kinds_[value.index] = kind; }
    // A construct's result is taken to be another value.
    void SetSame(ir::ValueId result, ir::ValueId value) { same_as_[result.index] = value; }
    ir::ValueId SameAs(ir::ValueId value) const {
        return same_as_[value.index].valid() ? same_as_[value.index] : value;
    }

  private:
    Lanes Find(ir::ValueId value);
    Lanes OfParameter(ir::ValueId value);
    Lanes OfBuiltin(ir::BuiltinId builtin) const;

    const ir::Kernel& kernel_;
    std::vector<Lanes> kinds_;          // by value
    std::vector<ir::ValueId> same_as_;  // by value
};

}  // namespace fornax::kernel

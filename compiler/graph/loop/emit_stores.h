// The stores of a point: what they write, and where.
#pragma once

#include <span>
#include <vector>

#include "compiler/graph/loop/emit_convert.h"
#include "compiler/graph/loop/emit_index.h"
#include "compiler/graph/loop/emit_scalars.h"
#include "compiler/graph/loop/kernel_code.h"

namespace fornax::graph::loop {

class StoreCode : KernelPart {
  public:
    struct Write {
        Id condition, offset, value;
        BufferId buffer;
    };

    StoreCode(KernelCode& code, Conversions& conversions, IndexCode& index, ScalarCode& scalars)
        : KernelPart(code), conversions_(conversions), index_(index), scalars_(scalars) {}

    // What the stores write at the point that is bound, and writing it.
    void Compute(std::span<const Store* const> stores, std::vector<Write>& writes);
    void Do(std::span<const Write> writes);
    // All values before any store: a load sees what earlier points stored.
    void Emit(std::span<const Store* const> stores);

  private:
    Conversions& conversions_;
    IndexCode& index_;
    ScalarCode& scalars_;
};

}  // namespace fornax::graph::loop

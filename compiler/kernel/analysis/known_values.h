// Values that are known when the kernel is compiled: what exact operations make of constants, of an
// invocation's numbers in its workgroup, such as where it writes in workgroup memory, or of what a
// loop's parameters are in one of its iterations.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

class KnownValues {
  public:
    explicit KnownValues(const ir::Kernel& kernel)
        : kernel_(kernel), stamps_(kernel.num_values(), 0), bits_(kernel.num_values(), 0) {}

    // Forgets all values. Those that come next are of the invocation with this index in its
    // workgroup, or of any.
    void Begin(std::optional<uint32_t> index = {}) {
        index_ = index;
        ++invocation_count_;
    }
    // The value has these bits, or is not known.
    void Set(ir::ValueId value, std::optional<uint64_t> bits) {
        stamps_[value.value()] = invocation_count_ << 1 | (bits ? 1 : 0);
        bits_[value.value()] = bits.value_or(0);
    }
    // The value's bits, if they follow from what is known.
    std::optional<uint64_t> Evaluate(ir::ValueId value) { return Evaluate(value, 0); }

  private:
    std::optional<uint64_t> Evaluate(ir::ValueId value, uint32_t depth);
    std::optional<uint64_t> Compute(ir::ValueId value, uint32_t depth);

    const ir::Kernel& kernel_;
    std::optional<uint32_t> index_;
    uint64_t invocation_count_ = 0;
    // By value: twice the invocation in which it was looked at, plus 1 if it is known.
    std::vector<uint64_t> stamps_;
    std::vector<uint64_t> bits_;
};

}  // namespace fornax::kernel

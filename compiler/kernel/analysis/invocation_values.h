// What values of an invocation are known when the kernel is compiled: pure operations on constants
// and on its numbers in the workgroup, such as where it writes in workgroup memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

class InvocationValues {
  public:
    explicit InvocationValues(const ir::Kernel& kernel)
        : kernel_(kernel), known_(kernel.num_values(), 0), values_(kernel.num_values(), 0) {}

    // Turns to the invocation with this index in its workgroup.
    void Begin(uint32_t index) {
        index_ = index;
        ++turn_;
    }
    // The value's bits, if they follow from the index.
    std::optional<uint64_t> Evaluate(ir::ValueId value) { return Evaluate(value, 0); }

  private:
    std::optional<uint64_t> Evaluate(ir::ValueId value, uint32_t depth);
    std::optional<uint64_t> Known(ir::ValueId value, uint32_t depth);

    const ir::Kernel& kernel_;
    uint32_t index_ = 0;
    uint32_t turn_ = 0;
    std::vector<uint32_t> known_;  // by value: the invocation it was computed for
    std::vector<uint64_t> values_;
};

}  // namespace fornax::kernel

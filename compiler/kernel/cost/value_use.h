// Which values a vector unit computes: those that differ between the invocations of a workgroup
// and are more than an address. What is one for the workgroup is the scalar unit's, and addresses
// are made by the units that access memory.
#pragma once

#include <vector>

#include "compiler/kernel/ir/kernel.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {

struct ValueUse {
    std::vector<bool> varies;   // by value: it may differ between invocations of a workgroup
    std::vector<bool> is_data;  // by value: something other than an address depends on it
};

ValueUse FindValueUse(const ir::Kernel& kernel, const Structure& structure);

}  // namespace fornax::kernel

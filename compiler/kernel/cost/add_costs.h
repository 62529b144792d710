// Finds what each region of a kernel does, and makes the kernel count how often regions run.
//
// A walk over the construct tree carries how many invocations come to each place, as a sum
// (CostCount). What follows from other counts needs no counter: the second side of a branch, a
// loop that runs a constant number of times, the test that all leave a loop by. Everything else
// gets one: the side of a branch, the continuing of a loop. Short sides of branches that touch no
// memory run under masks on a vector unit, so they cost all who come to the branch and are not
// counted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "compiler/kernel/interface/kernel_cost.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// The line of an instruction of SPIR-V, by its word in the module; "" if it is not known.
using SourceNamer = std::function<std::string(uint32_t word)>;

// The kernel must be verified, and remains so: it has more `count` instructions and is otherwise as
// it was. Before passes that know lanes. For tests: `blocks` becomes who comes to each block, but
// for short sides of branches.
KernelCost AddCosts(ir::Kernel& kernel,
                    const SourceNamer& source = nullptr,
                    std::map<ir::BlockId, CostCount>* blocks = nullptr);

}  // namespace fornax::kernel

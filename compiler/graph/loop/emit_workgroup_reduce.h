// What the invocations of a workgroup have, combined into one value that all of them get.
#pragma once

#include <map>

#include "compiler/graph/loop/emit_functions.h"
#include "compiler/graph/loop/emit_grid.h"
#include "compiler/graph/loop/emit_values.h"

namespace fornax::graph::loop {

class WorkgroupReduction : ValueOps {
  public:
    WorkgroupReduction(ModuleCode& module, ScalarFunctions& functions, WorkgroupGrid& grid)
        : ValueOps(module), functions_(functions), grid_(grid) {}

    // All invocations run this. `with_nan`: whether a maximum or minimum of NaN is NaN, and not
    // that of the numbers.
    Id Combined(Combine combine, ElementType type, Id value, bool with_nan = true);

  private:
    Id OfSubgroup(Combine combine, ElementType type, Id value, bool with_nan);

    ScalarFunctions& functions_;
    WorkgroupGrid& grid_;
    std::map<Id, Id> shared_;  // arrays in workgroup memory, by their elements' type
};

}  // namespace fornax::graph::loop

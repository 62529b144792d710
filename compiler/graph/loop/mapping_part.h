// All parts of a kernel's code together, for the mappings of points to invocations.
#pragma once

#include "compiler/graph/loop/emit_convert.h"
#include "compiler/graph/loop/emit_functions.h"
#include "compiler/graph/loop/emit_grid.h"
#include "compiler/graph/loop/emit_index.h"
#include "compiler/graph/loop/emit_loops.h"
#include "compiler/graph/loop/emit_reduce.h"
#include "compiler/graph/loop/emit_scalars.h"
#include "compiler/graph/loop/emit_stores.h"
#include "compiler/graph/loop/emit_workgroup_reduce.h"
#include "compiler/graph/loop/kernel_code.h"

namespace fornax::graph::loop {

struct KernelParts {
    KernelParts(const Kernel& kernel, const Target& target) : code(kernel, target) {}

    KernelCode code;
    ScalarFunctions functions = ScalarFunctions(code.module);
    Conversions conversions = Conversions(code.module);
    IndexCode index = IndexCode(code, conversions);
    WorkgroupGrid grid = WorkgroupGrid(code, index);
    LoopCode loops = LoopCode(code, index, grid);
    ScalarCode scalars = ScalarCode(code, functions, conversions, index);
    WorkgroupReduction workgroup = WorkgroupReduction(code.module, functions, grid);
    ReductionCode reductions = ReductionCode(code, functions, index, loops, scalars, workgroup);
    StoreCode stores = StoreCode(code, conversions, index, scalars);
};

// A mapping: names for what it takes of the parts.
class MappingPart : protected KernelPart {
  protected:
    explicit MappingPart(KernelParts& parts)
        : KernelPart(parts.code),
          functions_(parts.functions),
          index_(parts.index),
          grid_(parts.grid),
          loops_(parts.loops),
          scalars_(parts.scalars),
          workgroup_(parts.workgroup),
          reductions_(parts.reductions),
          stores_(parts.stores) {}
    ~MappingPart() = default;

    ScalarFunctions& functions_;
    IndexCode& index_;
    WorkgroupGrid& grid_;
    LoopCode& loops_;
    ScalarCode& scalars_;
    WorkgroupReduction& workgroup_;
    ReductionCode& reductions_;
    StoreCode& stores_;
};

}  // namespace fornax::graph::loop

// The kernel that is being written as a module: what all parts of its code share. Each concern is a
// class that is given this and the concerns below it:
//
//   emit_values.h            types, constants and pure operations; the module
//   emit_math.h              transcendental functions
//   emit_functions.h         scalar functions
//   emit_convert.h           conversions, elements in memory
//   current_point.h          what has a value at the point that the code has come to
//   domain_scope.h           what is known of variables for a part of the code
//   loop_nests.h             loops that become one, index expressions in terms of them
//   kernel_code.h            these together
//   emit_index.h             index expressions as arithmetic, accesses and their checks
//   emit_grid.h              workgroups and their invocations
//   emit_loops.h             loops over points
//   emit_scalars.h           scalars: each once, where it is needed
//   emit_workgroup_reduce.h  what the invocations of a workgroup have, combined
//   emit_reduce.h            reductions
//   emit_stores.h            stores of a point
//   mapping_part.h           all of these together, for the mappings
//
// A mapping says which invocation computes which points (docs/graph.md): emit_flat.h, emit_runs.h,
// emit_across.h, emit_rows.h, emit_phases.h, emit_window.h, emit_columns.h, emit_attention.h, and
// those of products: emit_product.h, emit_bytes.h, emit_register_product.h, emit_few_rows.h,
// emit_few_dots.h. emit_spirv.cpp chooses one.
#pragma once

#include "compiler/graph/loop/current_point.h"
#include "compiler/graph/loop/domain_scope.h"
#include "compiler/graph/loop/emit_values.h"
#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/loop_nests.h"
#include "compiler/graph/loop/scope.h"
#include "compiler/graph/loop/softmax.h"

namespace fornax::graph::loop {

struct KernelCode {
    KernelCode(const Kernel& loop_kernel, const Target& target);
    KernelCode(const KernelCode&) = delete;
    KernelCode& operator=(const KernelCode&) = delete;

    // The array of a buffer or of a local tensor.
    Id ArrayOf(BufferId buffer) const;

    const Kernel& kernel;
    const Scope scope;
    const SoftmaxReductions softmax;
    ModuleCode module;
    Ids buffers, locals;
    Domain domain;  // what is known of sizes and variables at the current point
    LoopNests nests;
    CurrentPoint point;
};

// A part of what writes the kernel's code: names for what all parts take.
class KernelPart : protected ValueOps {
  protected:
    explicit KernelPart(KernelCode& code) : ValueOps(code.module), code_(code) {}
    ~KernelPart() = default;

    KernelCode& code_;
    const Kernel& kernel_ = code_.kernel;
    const Scope& scope_ = code_.scope;
    Domain& domain_ = code_.domain;
    LoopNests& nests_ = code_.nests;
    CurrentPoint& point_ = code_.point;
};

}  // namespace fornax::graph::loop

// Cost records of a plan: what a run of it did, for the replay of npu/replay/. The plan has run on
// any device, and the records say nothing of that one but how many workgroups its kernels had.
//
// What is known of a plan's kernels are its own estimates (compiler/graph/loop/costs.h): products,
// operations by kind, the bytes of buffers each once. Regions of kernels, and accesses that a cache
// would serve, are the kernel compiler's to say and are not here.
#pragma once

#include <span>
#include <vector>

#include "compiler/graph/plan/plan.h"
#include "npu/replay/replay.h"
#include "runtime/plan/launches.h"

namespace fornax::runtime {

struct PlanRecords {
    std::vector<npu::Record> records;
    std::vector<uint32_t> steps;  // of each record: the plan's step
    // Steps that have no record: those of the host, and dispatches whose sizes are not known.
    uint32_t host_steps = 0;
    uint32_t unknown_steps = 0;
};

// One submission to one queue, in the order of the steps, with a dependency wherever a player has a
// barrier. `sizes` are those of a run that has ended, `kernels` are by kernel.
PlanRecords RecordsOf(const graph::Plan& plan,
                      const graph::Bindings& sizes,
                      const graph::MemoryPlan& memory,
                      std::span<const KernelInterface> kernels);

}  // namespace fornax::runtime

// Reductions: in one invocation, or shared by those of a workgroup where all of them run the code.
#pragma once

#include <span>
#include <vector>

#include "compiler/graph/loop/emit_loops.h"
#include "compiler/graph/loop/emit_scalars.h"
#include "compiler/graph/loop/emit_workgroup_reduce.h"
#include "compiler/graph/loop/kernel_code.h"

namespace fornax::graph::loop {

class ReductionCode final : KernelPart, public ReductionSource {
  public:
    ReductionCode(KernelCode& code,
                  ScalarFunctions& functions,
                  IndexCode& index,
                  LoopCode& loops,
                  ScalarCode& scalars,
                  WorkgroupReduction& workgroup)
        : KernelPart(code),
          functions_(functions),
          index_(index),
          loops_(loops),
          scalars_(scalars),
          workgroup_(workgroup) {
        scalars.UseReductions(*this);
    }

    Id ReductionValue(ScalarId id) override;

    // Runs `body`, which computes `bodies`, at all points of a reduction's loops.
    Ids Reduction(std::span<const Loop> loops,
                  std::span<const ScalarId> bodies,
                  std::span<const Id> initial,
                  bool cooperative,
                  const LoopCode::PointBody& body,
                  size_t ways = 1);
    // Values of this reduction that become one.
    Id Combined(ScalarId reduce, Id a, Id b);
    Id CombinedOfWorkgroup(ScalarId reduce, Id value);
    // The best value and its position with one more value. NaN is the greatest and the least.
    Ids ArgStep(const ArgReduce& reduce, ElementType type, Id best, Id position, Id value, Id at);

  private:
    Id ValueOf(ScalarId id, const Reduce& reduce);
    Id ValueOf(const ArgReduce& reduce);
    bool IsOfNumbers(ScalarId reduce) const;  // a maximum that NaN need not reach
    bool ShouldUnroll(std::span<const Loop> loops, const std::vector<bool>& needed) const;

    ScalarFunctions& functions_;
    IndexCode& index_;
    LoopCode& loops_;
    ScalarCode& scalars_;
    WorkgroupReduction& workgroup_;
};

}  // namespace fornax::graph::loop

// Loops over points: in one invocation, or shared by those of a workgroup.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "compiler/graph/loop/emit_grid.h"
#include "compiler/graph/loop/emit_index.h"
#include "compiler/graph/loop/kernel_code.h"

namespace fornax::graph::loop {

class LoopCode : KernelPart {
  public:
    // The code of a point: it gets and gives the carried values.
    using PointBody = std::function<Ids(std::span<const Id>)>;

    LoopCode(KernelCode& code, IndexCode& index, WorkgroupGrid& grid)
        : KernelPart(code), index_(index), grid_(grid) {}

    // Runs `body` at all points of the loops, one after the other.
    Ids ForNest(std::span<const Loop> loops, std::span<const Id> carried, const PointBody& body);
    Ids ForLoop(const Loop& loop, std::span<const Id> carried, const PointBody& body);
    // The same, with the points distributed over the workgroup's invocations. There are `ways` sets
    // of carried values, which different points may take so that they do not wait for each other;
    // the code of `several` points is written out.
    Ids ForLanes(const Nest& nest,
                 std::span<const Id> carried,
                 const PointBody& body,
                 size_t ways = 1,
                 size_t several = 1);
    // The code of each point: extents are constant.
    Ids Unrolled(std::span<const Loop> loops, std::span<const Id> carried, const PointBody& body);

    // How many points' code is written out, of what varies with the variables.
    size_t SeveralOf(const std::vector<bool>& needed, VariableSet variables) const;
    // The sets of carried values for a reduction over the loops.
    size_t WaysOf(std::span<const Loop> loops) const;

  private:
    IndexCode& index_;
    WorkgroupGrid& grid_;
};

}  // namespace fornax::graph::loop

// Values in memory that belong to the same rows, from one kernel: a reduction and what is computed
// from it and the row alone, such as the scale of a block of numbers, the numbers rounded to it,
// and the sum of those.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "compiler/graph/ir/graph.h"
#include "compiler/graph/schedule/kernel_builder.h"
#include "compiler/graph/schedule/realize.h"

namespace fornax::graph {

class RowGroups {
  public:
    // `realized` says by value index which values are in memory; both outlive this. Nothing is
    // grouped for one processor (`serial`), whose steps cost nothing.
    RowGroups(const Graph& graph, std::vector<bool>& realized, bool serial);

    // The kernel of a reduction, whose result is in memory, with stores of all values of its group;
    // nothing if it is alone. Each value is in one group only, and comes from the step of the
    // group's first node.
    std::optional<KernelBuilder> KernelOf(const Node& node);

    // Whether an earlier node's kernel stores the value.
    bool IsStored(ValueId value) const { return stored_[value.value()]; }

  private:
    // The nodes whose values are in memory, have the dimensions of `value` first, and are computed
    // from it; in the graph's order. The nearest ones, if there are many.
    std::vector<const Node*> RootsThatRead(ValueId value) const;
    bool Reduces(const Node& node) const;
    // Whether the node's kernel by itself is a product or an attention, which goes by tiles.
    bool HasTiles(const Node& node);
    std::optional<KernelBuilder> Build(const std::vector<const Node*>& group);
    // Whether all that the kernel loads is there when the node's step runs.
    bool HasOperands(const KernelBuilder& builder, const Node& node) const;

    const Graph& graph_;
    std::vector<bool>& realized_;
    // Nodes that a kernel of rows may have. None for one processor.
    std::map<const Node*, NodeClass> members_;
    std::vector<size_t> place_;                      // of the node that a value comes from
    std::vector<std::vector<const Node*>> readers_;  // members, by value index
    std::vector<bool> stored_;                       // by value index
};

}  // namespace fornax::graph

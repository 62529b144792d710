// Which kernels read a value and which values a kernel reads, through what is inlined into them.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <vector>

#include "compiler/graph/ir/graph.h"
#include "compiler/graph/schedule/realize.h"

namespace fornax::graph {

// Nodes that only say where the elements of their operand are.
bool IsView(const Operation& operation);

// How often a node reads each element of an operand, for one evaluation of each of its elements. By
// the hints of the graph's sizes.
double ReadsOfOperand(const Graph& graph, const Node& node, NodeClass node_class, size_t operand);

class Readers {
  public:
    // `realized` says by value index which values are in memory, and may change between calls. Both
    // must outlive this.
    Readers(const Graph& graph, const std::vector<bool>& realized);

    struct Reader {
        size_t node = 0;
        ValueId result;  // what its kernel computes; not valid for a node without results
    };
    // The readers of a value, each once, in no particular order.
    std::vector<Reader> Of(ValueId value) const;
    // The values in memory whose kernels read `value`; one is not valid if a state is written.
    std::vector<ValueId> ResultsOf(ValueId value) const;

    // The indices of the nodes that have the value as an operand, once for each operand.
    std::span<const size_t> UsersOf(ValueId value) const { return users_[value.value()]; }

    // The other way round: the values in memory from which the operands are computed.
    std::set<ValueId> BuffersOf(std::span<const ValueId> operands) const;

    // Whether all that is made of a value is a copy, which no reduction joins.
    bool OnlyConcatenate(ValueId value) const;

  private:
    const Graph& graph_;
    const std::vector<bool>& realized_;
    std::vector<std::vector<size_t>> users_;  // by value index
};

}  // namespace fornax::graph

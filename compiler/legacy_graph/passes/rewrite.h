// Replacing values while a pass walks the nodes in order.
#pragma once

#include <vector>

#include "compiler/legacy_graph/graph.h"

namespace fornax::legacy_graph {

// Remembers which value stands for which. A pass calls Update() on each node before it looks at it,
// and Finish() at its end.
class Replacements {
  public:
    explicit Replacements(const Graph& graph) : of_value_(graph.values().size()) {}

    void Replace(ValueId old_value, ValueId new_value) {
        if (of_value_.size() <= old_value.value()) {
            of_value_.resize(old_value.value() + 1);
        }
        of_value_[old_value.value()] = Resolve(new_value);
    }

    ValueId Resolve(ValueId id) const {
        return id.value() < of_value_.size() && of_value_[id.value()].valid()
                   ? of_value_[id.value()]
                   : id;
    }

    void Update(Node& node) const {
        for (ValueId& operand : node.operands) {
            operand = Resolve(operand);
        }
    }

    void Finish(Graph& graph) const {
        for (size_t i = 0; i < graph.outputs().size(); ++i) {
            Output& output = graph.MutableOutput(i);
            output.value = Resolve(output.value);
        }
    }

  private:
    std::vector<ValueId> of_value_;
};

}  // namespace fornax::legacy_graph

// Short ways to build graphs in tests. A graph that does not fit together ends the test program.
#pragma once

#include <string>
#include <vector>

#include "compiler/legacy_graph/graph.h"

namespace fornax::legacy_graph::testing {

inline Shape ShapeOf(std::vector<int64_t> dims) {
    return Shape::Make(dims).value();
}

class GraphBuilder {
  public:
    explicit GraphBuilder(const std::string& name = "test") : graph(name) {}

    ValueId Input(const std::string& name, std::vector<int64_t> dims) {
        return graph.AddInput(name, {DataType::kF32, ShapeOf(std::move(dims))});
    }
    // A constant whose values count up from `first` in steps of `step`.
    ValueId Constant(const std::string& name,
                     std::vector<int64_t> dims,
                     float first = 1,
                     float step = 0.5f) {
        Shape shape = ShapeOf(std::move(dims));
        std::vector<float> values(shape.elements());
        for (size_t i = 0; i < values.size(); ++i) {
            values[i] = first + step * static_cast<float>(i);
        }
        return graph.AddFloats(name, std::move(shape), values);
    }
    ValueId Node(const std::string& name, Operator operation, std::vector<ValueId> operands) {
        return graph.AddNode(name, std::move(operation), std::move(operands)).value();
    }
    ValueId Relu(const std::string& name, ValueId x) {
        return Node(name, op::Unary{{UnaryFunction::kRelu}}, {x});
    }
    ValueId Add(const std::string& name, ValueId a, ValueId b) {
        return Node(name, op::Binary{BinaryFunction::kAdd, {}}, {a, b});
    }
    ValueId Conv3x3(const std::string& name, ValueId x, ValueId weight) {
        op::Conv conv;
        conv.window.kernel = {3, 3};
        conv.window.pads = {1, 1, 1, 1};
        return Node(name, conv, {x, weight});
    }

    Graph graph;
};

}  // namespace fornax::legacy_graph::testing

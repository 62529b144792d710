// Products of one value joined: which are, and that all compute the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/graph/testing/compare_tensors.h"
#include "compiler/graph/testing/random_tensor.h"

namespace fornax::graph {
namespace {

class JoinedProducts : public ::testing::Test {
  protected:
    Tensor Random(const std::vector<int64_t>& dims) {
        return graph::testing::MakeRandomTensor(random_, ElementType::kF32, dims, -4, 4);
    }
    ValueId Add(Operation operation, std::vector<ValueId> operands) {
        const Result<NodeId> node =
            graph_.AddNode("node", std::move(operation), std::move(operands));
        EXPECT_TRUE(node.ok()) << node.error().message;
        return graph_[*node].results[0];
    }
    ValueId Input(const std::vector<int64_t>& dims) {
        inputs_.push_back(Random(dims));
        return graph_.AddInput("in" + std::to_string(inputs_.size()), inputs_.back().type());
    }
    // x times a constant matrix with so many columns, which lies as `labels` say.
    ValueId Product(ValueId x, int64_t columns, const char* labels = "kn") {
        const std::vector<int64_t> dims =
            labels[0] == 'k' ? std::vector<int64_t>{6, columns} : std::vector<int64_t>{columns, 6};
        return Add(op::Contract{"bmk", labels, "bmn", ElementType::kF32},
                   {x, graph_.AddConstant("weights", Random(dims))});
    }
    ValueId PlusRow(ValueId value, int64_t columns) {
        const ValueId row = Add(op::Broadcast{graph_.ShapeOf(value)},
                                {Add(op::Reshape{Shape{1, 1, columns}},
                                     {graph_.AddConstant("row", Random({columns}))})});
        return Add(op::Map{ScalarFunction::kAdd}, {row, value});
    }
    // What makes a value worth joining: it is read in another order.
    void Output(ValueId value) {
        const ValueId turned = Add(op::Permute{{0, 2, 1}}, {value});
        graph_.AddOutput("out", Add(op::Map{ScalarFunction::kNeg}, {turned}));
    }
    // The number of products after the pass, which changes no value.
    size_t Join() {
        const Result<std::vector<Tensor>> expected = Interpret(graph_, inputs_);
        EXPECT_TRUE(expected.ok()) << expected.error().message;
        const Result<Graph> joined = JoinProducts(graph_);
        EXPECT_TRUE(joined.ok()) << joined.error().message;
        EXPECT_TRUE(Verify(*joined).ok()) << Verify(*joined).error().message;
        const Result<std::vector<Tensor>> actual = Interpret(*joined, inputs_);
        EXPECT_TRUE(actual.ok()) << actual.error().message;
        for (size_t i = 0; i < expected->size(); ++i) {
            EXPECT_EQ(graph::testing::Difference((*actual)[i], (*expected)[i], 0), "") << i;
        }
        return static_cast<size_t>(std::count_if(
            joined->nodes().begin(), joined->nodes().end(),
            [](const Node& node) { return std::holds_alternative<op::Contract>(node.operation); }));
    }

    Graph graph_;
    std::vector<Tensor> inputs_;

  private:
    std::mt19937_64 random_{7};
};

TEST_F(JoinedProducts, OfDifferentWidthsWithAndWithoutBias) {
    for (const char* labels : {"kn", "nk"}) {
        const ValueId x = Input({2, 5, 6});
        Output(PlusRow(Product(x, 4, labels), 4));
        Output(Product(x, 1, labels));
        Output(PlusRow(Product(x, 7, labels), 7));
    }
    EXPECT_EQ(Join(), 2U);
}

TEST_F(JoinedProducts, NotOfDifferentValues) {
    Output(Product(Input({2, 5, 6}), 4));
    Output(Product(Input({2, 5, 6}), 4));
    EXPECT_EQ(Join(), 2U);
}

// What only elementwise operations read, and what an output shows, stays alone.
TEST_F(JoinedProducts, NotWhatHasReadersOfItsOwn) {
    const ValueId x = Input({2, 5, 6});
    const ValueId gate = Product(x, 4), up = Product(x, 4);
    graph_.AddOutput("gated", Add(op::Map{ScalarFunction::kMul}, {gate, up}));
    graph_.AddOutput("plain", Product(x, 3));
    graph_.AddOutput("turned", Add(op::Permute{{2, 0, 1}}, {PlusRow(Product(x, 3), 3)}));
    Output(Product(x, 3));
    EXPECT_EQ(Join(), 5U);
}

}  // namespace
}  // namespace fornax::graph

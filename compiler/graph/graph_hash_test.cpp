// HashGraph: whatever changes a plan changes the hash.
#include "compiler/graph/graph_hash.h"

#include <functional>
#include <set>

#include <gtest/gtest.h>

namespace fornax::graph {
namespace {

struct Parts {
    std::string graph = "g";
    std::string input = "x";
    std::string node = "n";
    std::string output = "y";
    ElementType element = ElementType::kF32;
    Expr size = Symbol("n");
    int64_t hint = 4;
    Range range = {0, 100};
    bool guard = false;
    float constant = 1;
    float large = 1;
    Operation operation = op::Map{ScalarFunction::kAdd};
    bool swapped = false;
    float in_body = 1;
    std::string state = "s";
    CompileOptions options;
};

Graph Make(const Parts& parts) {
    Graph graph(parts.graph);
    graph.sizes().Declare("n", parts.hint, parts.range);
    if (parts.guard) {
        graph.sizes().AddGuard({Relation::kLess, Symbol("n"), 50});
    }
    const TensorType type = {parts.element, Shape({parts.size, 8})};
    ValueId a = graph.AddInput(parts.input, type);
    ValueId b = graph.AddInput("b", type);
    graph.AddConstant("c", Tensor::FromFloats({1}, std::vector<float>{parts.constant}));
    graph.AddConstant("w", Tensor::FromFloats({2000}, std::vector<float>(2000, parts.large)));
    if (parts.swapped) {
        std::swap(a, b);
    }
    const ValueId sum =
        graph[graph.AddNode(parts.node, parts.operation, {a, b}).value()].results[0];
    Graph body("body");
    body.AddInput("x", graph.TypeOf(sum));
    body.AddOutput("y", body.AddConstant("c", Tensor::FromFloats({1}, std::vector{parts.in_body})));
    const ValueId result = graph[graph
                                     .AddNode("call", op::Composite{"f", {}}, {sum},
                                              {std::make_shared<const Graph>(std::move(body))})
                                     .value()]
                               .results[0];
    EXPECT_TRUE(graph.AddNode("write", op::WriteState{parts.state}, {result}).ok());
    graph.AddOutput(parts.output, result);
    return graph;
}

Hash128 HashOf(const Parts& parts) {
    return HashGraph(Make(parts), parts.options);
}

TEST(GraphHash, EqualGraphsHaveOneHash) {
    EXPECT_EQ(HashOf({}), HashOf({}));
}

TEST(GraphHash, EveryPartCounts) {
    const std::vector<std::function<void(Parts&)>> changes = {
        [](Parts&) {},
        [](Parts& p) { p.graph = "h"; },
        [](Parts& p) { p.input = "z"; },
        [](Parts& p) { p.node = "o"; },
        [](Parts& p) { p.output = "z"; },
        [](Parts& p) { p.element = ElementType::kF16; },
        [](Parts& p) { p.size = 4; },
        [](Parts& p) { p.size = Expr(Symbol("n")) + 1; },
        [](Parts& p) { p.hint = 5; },
        [](Parts& p) { p.range.low = 1; },
        [](Parts& p) { p.range.high = 99; },
        [](Parts& p) { p.guard = true; },
        [](Parts& p) { p.constant = 2; },
        [](Parts& p) { p.large = 2; },
        [](Parts& p) { p.operation = op::Map{ScalarFunction::kMul}; },
        [](Parts& p) { p.operation = op::Concat{1}; },
        [](Parts& p) { p.operation = op::Concat{0}; },
        [](Parts& p) { p.swapped = true; },
        [](Parts& p) { p.in_body = 2; },
        [](Parts& p) { p.state = "t"; },
        [](Parts& p) { p.options.strict = true; },
        [](Parts& p) { p.options.dynamic_sizes = {"n"}; },
        [](Parts& p) { p.options.precision = Precision::kMedium; },
        [](Parts& p) { p.options.bfloat16_products = true; },
        [](Parts& p) { p.options.serial = true; },
    };
    std::set<Hash128> hashes;
    for (const auto& change : changes) {
        Parts parts;
        change(parts);
        hashes.insert(HashOf(parts));
    }
    EXPECT_EQ(hashes.size(), changes.size());
}

TEST(GraphHash, StructureIsWithoutLargeConstants) {
    const auto structure = [](const Parts& parts) {
        return HashStructure(Make(parts), parts.options);
    };
    Parts trained;
    trained.large = 7;
    EXPECT_EQ(structure(trained), structure({}));
    EXPECT_NE(HashOf(trained), HashOf({}));
    EXPECT_NE(structure({}), HashOf({}));
    Parts other;
    other.constant = 7;
    EXPECT_NE(structure(other), structure({}));
}

}  // namespace
}  // namespace fornax::graph

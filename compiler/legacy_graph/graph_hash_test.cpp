// Changing any one thing that a plan depends on or shows changes the hash.
#include "compiler/legacy_graph/graph_hash.h"

#include <functional>
#include <map>

#include <gtest/gtest.h>

#include "compiler/legacy_graph/testing/graph_builder.h"

namespace fornax::legacy_graph {
namespace {

using testing::GraphBuilder;

// Everything about the graph under test that can be varied.
struct Recipe {
    std::string graph_name = "net", input_name = "x", output_name = "y", node_name = "conv";
    int64_t batch = 2;
    float first_weight = 1;
    std::vector<int64_t> weight_dims = {4, 3, 3, 3};
    op::Conv conv;
    op::Softmax softmax{1};
    BinaryFunction function = BinaryFunction::kAdd;
    bool swap_operands = false;
    bool second_output = false;
    bool extra_node = false;
    std::vector<uint32_t> permutation = {0, 1, 2, 3};
    CompileOptions options;

    Recipe() {
        conv.window.kernel = {3, 3};
        conv.window.pads = {1, 1, 1, 1};
    }

    Hash128 Hash() const {
        GraphBuilder b(graph_name);
        const ValueId x = b.Input(input_name, {batch, 3, 8, 8});
        const ValueId weight = b.Constant("w", weight_dims, first_weight);
        const ValueId y = b.Node(node_name, conv, {x, weight});
        const ValueId z = b.Node("softmax", softmax, {y});
        ValueId last = b.Node("join", op::Binary{function, {}},
                              swap_operands ? std::vector{y, z} : std::vector{z, y});
        last = b.Node("turn", op::Transpose{permutation}, {last});
        if (extra_node) {
            last = b.Relu("relu", last);
        }
        b.graph.AddOutput(output_name, last);
        if (second_output) {
            b.graph.AddOutput("again", last);
        }
        return HashGraph(b.graph, options);
    }
};

TEST(GraphHash, IsTheSameForTheSameGraph) {
    EXPECT_EQ(Recipe().Hash(), Recipe().Hash());
}

TEST(GraphHash, ChangesWithEveryPart) {
    const std::map<std::string, std::function<void(Recipe&)>> changes = {
        {"graph name", [](Recipe& r) { r.graph_name = "other"; }},
        {"input name", [](Recipe& r) { r.input_name = "image"; }},
        {"output name", [](Recipe& r) { r.output_name = "scores"; }},
        {"node name", [](Recipe& r) { r.node_name = "first"; }},
        {"shape", [](Recipe& r) { r.batch = 3; }},
        {"weight", [](Recipe& r) { r.first_weight = 1.5f; }},
        {"weight shape", [](Recipe& r) { r.weight_dims = {5, 3, 3, 3}; }},
        {"dilations", [](Recipe& r) { r.conv.window.dilations = {2, 1}; }},
        {"strides", [](Recipe& r) { r.conv.window.strides = {2, 1}; }},
        {"strides of the other axis", [](Recipe& r) { r.conv.window.strides = {1, 2}; }},
        {"pads", [](Recipe& r) { r.conv.window.pads = {1, 1, 1, 2}; }},
        {"group", [](Recipe& r) { r.conv.group = 3, r.weight_dims = {6, 1, 3, 3}; }},
        {"activation", [](Recipe& r) { r.conv.activation.function = UnaryFunction::kRelu; }},
        {"activation's parameter", [](Recipe& r) { r.conv.activation.a = 1; }},
        {"activation's other parameter", [](Recipe& r) { r.conv.activation.b = 1; }},
        {"axis", [](Recipe& r) { r.softmax.axis = 2; }},
        {"function", [](Recipe& r) { r.function = BinaryFunction::kMul; }},
        {"edges", [](Recipe& r) { r.swap_operands = true; }},
        {"outputs", [](Recipe& r) { r.second_output = true; }},
        {"nodes", [](Recipe& r) { r.extra_node = true; }},
        {"permutation", [](Recipe& r) { r.permutation = {0, 1, 3, 2}; }},
        {"configuration", [](Recipe& r) { r.options.fuse = false; }},
    };
    std::map<Hash128, std::string> seen = {{Recipe().Hash(), "nothing"}};
    for (const auto& [name, change] : changes) {
        Recipe recipe;
        change(recipe);
        const auto [entry, is_new] = seen.emplace(recipe.Hash(), name);
        EXPECT_TRUE(is_new) << name << " changes no more than " << entry->second;
    }
}

TEST(GraphHash, TellsOperatorsWithEqualParametersApart) {
    auto hash = [](Operator operation) {
        GraphBuilder b;
        const ValueId x = b.Input("x", {2, 3});
        b.graph.AddOutput("y", b.Node("n", std::move(operation), {x}));
        return HashGraph(b.graph, {});
    };
    EXPECT_NE(hash(op::Softmax{0}), hash(op::Softmax{1}));
    EXPECT_NE(hash(op::Softmax{1}), hash(op::Concat{1}));
    EXPECT_NE(hash(op::Reduce{op::ReduceKind::kSum, 0, 1}),
              hash(op::Reduce{op::ReduceKind::kMean, 0, 1}));
    EXPECT_NE(hash(op::Reshape{testing::ShapeOf({3, 2})}),
              hash(op::Reshape{testing::ShapeOf({6})}));
}

TEST(GraphHash, TellsDataTypesApart) {
    auto hash = [](DataType type, std::vector<int64_t> dims) {
        Graph graph;
        const TensorType tensor{type, testing::ShapeOf(std::move(dims))};
        graph.AddOutput(
            "y", graph.AddConstant("c", tensor, std::vector<uint8_t>(tensor.size_bytes(), 0)));
        return HashGraph(graph, {});
    };
    EXPECT_NE(hash(DataType::kF32, {4}), hash(DataType::kI64, {2}));  // 16 zero bytes both
}

}  // namespace
}  // namespace fornax::legacy_graph

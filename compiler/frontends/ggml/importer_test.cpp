// What graphs of ggml compute, by the interpreter, and which storages they read and write.
#include "compiler/frontends/ggml/importer.h"

#include <gtest/gtest.h>

#include "compiler/graph/interpret/interpreter.h"

namespace fornax::ggml_frontend {
namespace {

using Sizes = std::array<int64_t, kDims>;

// Builds graphs whose tensors lie in one piece.
class Builder {
  public:
    // A tensor with a storage of its own.
    int32_t Add(std::string_view type, const Sizes& ne, std::string operation = "NONE") {
        Tensor tensor;
        tensor.type = FindType(type);
        tensor.ne = ne;
        tensor.nb[0] = static_cast<uint64_t>(tensor.type->block_bytes);
        tensor.nb[1] = tensor.nb[0] * static_cast<uint64_t>(ne[0] / tensor.type->block_elements);
        tensor.nb[2] = tensor.nb[1] * static_cast<uint64_t>(ne[1]);
        tensor.nb[3] = tensor.nb[2] * static_cast<uint64_t>(ne[2]);
        tensor.storage = static_cast<uint32_t>(graph.storages.size());
        tensor.operation = std::move(operation);
        tensor.name = "node";
        Storage storage;
        storage.type = tensor.type;
        storage.ne = ne;
        graph.storages.push_back(storage);
        graph.tensors.push_back(tensor);
        return static_cast<int32_t>(graph.tensors.size() - 1);
    }
    int32_t Node(std::string operation,
                 std::string_view type,
                 const Sizes& ne,
                 std::vector<int32_t> sources) {
        const int32_t index = Add(type, ne, std::move(operation));
        graph.tensors.back().sources = std::move(sources);
        graph.nodes.push_back(static_cast<uint32_t>(index));
        return index;
    }
    // A node that writes to another tensor's storage, like it.
    int32_t NodeIn(std::string operation, int32_t in, std::vector<int32_t> sources) {
        Tensor tensor = graph.tensors[static_cast<size_t>(in)];
        tensor.operation = std::move(operation);
        tensor.sources = std::move(sources);
        graph.tensors.push_back(tensor);
        graph.nodes.push_back(static_cast<uint32_t>(graph.tensors.size() - 1));
        return static_cast<int32_t>(graph.nodes.back());
    }

    Graph graph;
};

std::vector<float> RunOne(const Graph& graph, const std::vector<graph::Tensor>& inputs) {
    const Result<ImportedGraph> imported = Import(graph, "test");
    EXPECT_TRUE(imported.ok()) << imported.error().message;
    const Result<std::vector<graph::Tensor>> outputs = graph::Interpret(imported->graph, inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.error().message;
    std::vector<float> values;
    for (int64_t i = 0; i < (*outputs)[0].count(); ++i) {
        values.push_back(static_cast<float>((*outputs)[0].At(i).number));
    }
    return values;
}

TEST(GgmlImporter, MatricesOfTheSecondOperandShareOneOfTheFirst) {
    Builder builder;
    const int32_t a = builder.Add("f32", {2, 1, 1, 1}), b = builder.Add("f32", {2, 1, 2, 1});
    builder.Node("MUL_MAT", "f32", {1, 1, 2, 1}, {a, b});
    const auto x = graph::Tensor::FromFloats({1, 1, 1, 2}, std::vector<float>{2, 3});
    const auto y = graph::Tensor::FromFloats({1, 2, 1, 2}, std::vector<float>{1, 10, 100, 1000});
    const Graph& graph = builder.graph;
    const Result<ImportedGraph> imported = Import(graph, "test");
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    // The product's operands are read second operand last.
    const bool a_first = imported->inputs[0].storage == 0;
    EXPECT_EQ(RunOne(graph, a_first ? std::vector{x, y} : std::vector{y, x}),
              (std::vector<float>{32, 3200}));
}

// A block of q8_0: the scale 0.5 and the bytes 0, 1, .., 30, -128; of q4_0: the scale 2 and the
// codes 0 to 15 in the low halves, 15 to 0 in the high ones.
TEST(GgmlImporter, BlocksAreDecoded) {
    for (const std::string_view type : {"q8_0", "q4_0"}) {
        std::vector<uint8_t> block;
        std::vector<float> expected;
        if (type == "q8_0") {
            block = {0x00, 0x38};
            for (int i = 0; i < 32; ++i) {
                const int code = i == 31 ? -128 : i;
                block.push_back(static_cast<uint8_t>(code));
                expected.push_back(static_cast<float>(code) * 0.5F);
            }
        } else {
            block = {0x00, 0x40};
            for (int i = 0; i < 32; ++i) {
                const int code = i < 16 ? i : 31 - i;
                if (i < 16) {
                    block.push_back(static_cast<uint8_t>(i | (15 - i) << 4));
                }
                expected.push_back(static_cast<float>(code - 8) * 2);
            }
        }
        Builder builder;
        const int32_t x = builder.Add(type, {32, 1, 1, 1});
        builder.Node("CPY", "f32", {32, 1, 1, 1}, {x});
        uint8_t* data = nullptr;
        graph::Tensor bytes = graph::Tensor::Zeros(
            graph::ElementType::kU8, {1, 1, 1, static_cast<int64_t>(block.size())}, &data);
        std::copy(block.begin(), block.end(), data);
        EXPECT_EQ(RunOne(builder.graph, {bytes}), expected) << type;
    }
}

TEST(GgmlImporter, WhatIsWrittenInPlaceIsAState) {
    Builder builder;
    const int32_t cache = builder.Add("f16", {4, 8, 1, 1});
    const int32_t rows = builder.Add("f32", {4, 2, 1, 1}), at = builder.Add("i64", {2, 1, 1, 1});
    builder.NodeIn("SET_ROWS", cache, {rows, at});
    Result<ImportedGraph> imported = Import(builder.graph, "test");
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    ASSERT_EQ(imported->states.size(), 1U);
    EXPECT_EQ(imported->states[0].storage, 0U);
    EXPECT_EQ(imported->inputs, (std::vector<ImportedGraph::Input>{{1}, {2}}));
    EXPECT_TRUE(imported->outputs.empty());

    // Memory that others use too is read before and written behind the run.
    builder.graph.storages[0].is_shared = true;
    imported = Import(builder.graph, "test");
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    EXPECT_TRUE(imported->states.empty());
    EXPECT_EQ(imported->outputs, (std::vector<uint32_t>{0}));
}

TEST(GgmlImporter, WhatIsOverwrittenLaterIsNoOutput) {
    Builder builder;
    const int32_t x = builder.Add("f32", {4, 1, 1, 1});
    const int32_t y = builder.Node("SQR", "f32", {4, 1, 1, 1}, {x});
    builder.Node("SQRT", "f32", {4, 1, 1, 1}, {y});
    builder.graph.storages[1].is_kept = false;
    const Result<ImportedGraph> imported = Import(builder.graph, "test");
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    EXPECT_EQ(imported->outputs, (std::vector<uint32_t>{2}));
}

TEST(GgmlImporter, ErrorsNameTheNode) {
    Builder builder;
    const int32_t x = builder.Add("f32", {256, 1, 1, 1});
    builder.Node("CPY", "q4_K", {256, 1, 1, 1}, {x});
    builder.graph.tensors.back().name = "to q4_K";
    Result<ImportedGraph> imported = Import(builder.graph, "test");
    ASSERT_FALSE(imported.ok());
    EXPECT_EQ(imported.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(imported.error().message, "to q4_K (CPY): results of type q4_K are not covered.");

    builder.graph.tensors.back().operation = "FUTURE_OPERATOR";
    imported = Import(builder.graph, "test");
    ASSERT_FALSE(imported.ok());
    EXPECT_EQ(imported.error().message, "to q4_K (FUTURE_OPERATOR): the operator is not covered.");

    // A type that is not known to the frontend.
    builder.graph.tensors.back().operation = "CPY";
    builder.graph.tensors[0].type = nullptr;
    builder.graph.storages[0].type = nullptr;
    imported = Import(builder.graph, "test");
    ASSERT_FALSE(imported.ok());
    EXPECT_EQ(imported.error().message, "to q4_K (CPY): the type of node is not covered.");
    builder.graph.tensors.back().operation = "FUTURE_OPERATOR";

    // Nothing has to be computed, and still it is not said to be covered.
    builder.graph.tensors.back().ne = {0, 1, 1, 1};
    EXPECT_FALSE(Import(builder.graph, "test").ok());
}

}  // namespace
}  // namespace fornax::ggml_frontend

// Exports by themselves: states, what is computed before, weights outside, refusals. What operators
// mean is compared by tests/graph/export_test.py.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "base/file.h"
#include "base/test_directory.h"
#include "compiler/graph/export/exported_model.h"

namespace fornax::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Graph Parse(const std::string& body) {
    Result<Graph> graph = ParseGraph("graph \"example\" {\n" + body + "}\n");
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    return *std::move(graph);
}

constexpr const char* kCounter = R"(
    %0 = input "x" f32[2]
    %1 = input "w" f32[2]
    %2 = constant "two" f32[2] {2, 2}
    %3 = map "scaled" (%1, %2) {function = mul}
    %4 = read_state "read" () {state = "sum", type = f32[2]}
    %5 = map "added" (%0, %3) {function = add}
    %6 = map "total" (%4, %5) {function = add}
    write_state "write" (%6) {state = "sum"}
    output "y" %6
)";

std::vector<std::string> NamesOf(const std::vector<ExportedPort>& ports) {
    std::vector<std::string> names;
    for (const ExportedPort& port : ports) {
        names.push_back(port.name);
    }
    return names;
}

TEST(Export, StatesAreInputsAndOutputs) {
    const Graph graph = Parse(kCounter);
    const Result<ExportedModel> model = ExportGraph(graph, {.weights = {}, .names = {{"y", "z"}}});
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_THAT(NamesOf(model->inputs), ElementsAre("x", "w", "sum"));
    EXPECT_THAT(NamesOf(model->outputs), ElementsAre("z", "sum_new"));
}

// What depends on weights alone is a weight.
TEST(Export, WeightsAreComputedBefore) {
    const Graph graph = Parse(kCounter);
    const std::vector<float> w = {3, 5};
    ExportOptions options;
    options.weights[1] = Tensor::FromFloats({2}, w);
    const Result<ExportedModel> model = ExportGraph(graph, options);
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_THAT(NamesOf(model->inputs), ElementsAre("x", "sum"));
    ASSERT_EQ(model->weights.size(), 1u);
    EXPECT_EQ(model->weights[0].second.At(1).number, 10);
}

TEST(Export, LargeWeightsAreInAFileBesideIt) {
    const TestDirectory directory;
    ExportedModel model;
    model.name = "large";
    const std::vector<float> values(1000, 1.5f), few(3, 2.5f);
    model.weights.emplace_back("a", Tensor::FromFloats({1000}, values));
    model.weights.emplace_back("b", Tensor::FromFloats({3}, few));
    model.weights.emplace_back("c", Tensor::FromFloats({10, 100}, values));
    const std::string path = directory / "model.onnx";
    ASSERT_TRUE(WriteOnnx(model, path, 4000).ok());
    onnx::ModelProto proto;
    ASSERT_TRUE(proto.ParseFromString(*ReadTextFile(path, 1 << 20)));
    ASSERT_EQ(proto.graph().initializer_size(), 3);
    const auto& third = proto.graph().initializer(2);
    EXPECT_EQ(third.data_location(), onnx::TensorProto::EXTERNAL);
    EXPECT_EQ(third.external_data(0).value(), "model.onnx.data");
    EXPECT_EQ(third.external_data(1).value(), "4000");
    EXPECT_EQ(third.external_data(2).value(), "4000");
    EXPECT_EQ(proto.graph().initializer(1).raw_data().size(), 12u);
    EXPECT_EQ(std::filesystem::file_size(path + ".data"), 8000u);

    // What fits stays inside.
    ASSERT_TRUE(WriteOnnx(model, path, 8012).ok());
    ASSERT_TRUE(proto.ParseFromString(*ReadTextFile(path, 1 << 20)));
    EXPECT_EQ(proto.graph().initializer(2).raw_data().size(), 4000u);
}

TEST(Export, WhatHasNoOperatorIsNamed) {
    const Graph graph = Parse(R"(
    %0 = input "x" f32[4]
    %1 = bitcast "bits" (%0) {to = u32}
    output "y" %1
)");
    const Result<ExportedModel> model = ExportGraph(graph);
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(model.error().message,
              "example, node bits: the primitive bitcast has no operator of ONNX.");
}

constexpr const char* kOpen = R"(
    symbol n = 4 in 0..100
    %0 = input "x" f32[2*n, 3]
    %1 = constant "zero" f32[1, 1] {0}
    %2 = broadcast "zeros" (%1) {shape = [n, 6]}
    %3 = reshape "rows" (%0) {shape = [n, 6]}
    %4 = map "sum" (%2, %3) {function = add}
    output "y" %4
)";

// What symbols are follows from the inputs; constants of open sizes are made when the model runs.
TEST(Export, OpenSizesFollowFromInputs) {
    const TestDirectory directory;
    const Result<ExportedModel> model = ExportGraph(Parse(kOpen));
    ASSERT_TRUE(model.ok()) << model.error().message;
    ASSERT_EQ(model->symbols.size(), 1u);
    EXPECT_EQ(model->symbols[0].scale, 2);
    ASSERT_EQ(model->sizes.size(), 1u);
    EXPECT_EQ(model->sizes[0].values[0].ToString(), "n");
    const std::string path = directory / "model.onnx";
    ASSERT_TRUE(WriteOnnx(*model, path).ok());
    onnx::ModelProto proto;
    ASSERT_TRUE(proto.ParseFromString(*ReadTextFile(path, 1 << 20)));
    const auto& dims = proto.graph().input(0).type().tensor_type().shape().dim();
    EXPECT_EQ(dims[0].dim_param(), "2*n");
    EXPECT_EQ(dims[1].dim_value(), 3);
    std::vector<std::string> operators;
    for (const auto& node : proto.graph().node()) {
        operators.push_back(node.op_type());
    }
    EXPECT_THAT(operators,
                ElementsAre("Shape", "Div", "Concat", "Reshape", "Expand", "Add", "Identity"));
    const std::string script = directory / "model.py";
    ASSERT_TRUE(WriteTorch(*model, script).ok());
    EXPECT_THAT(*ReadTextFile(script, 1 << 20), HasSubstr("_n0 = (int(x.shape[0]) - 0) // 2\n"));
}

TEST(Export, SizesThatNoInputTellsAreNamed) {
    const Graph graph = Parse(R"(
    symbol n = 4 in 0..100
    %0 = input "x" f32[n*n]
    %1 = reshape "rows" (%0) {shape = [n, n]}
    output "y" %1
)");
    EXPECT_THAT(ExportGraph(graph).error().message, HasSubstr("the size n is that of no input"));
}

// Names of models reach a script that is run.
TEST(Export, ScriptsHoldNoTextOfTheModel) {
    const TestDirectory directory;
    ExportedModel model;
    model.name = "\"\"\"\nimport os\n";
    const std::string path = directory / "model.py";
    ASSERT_TRUE(WriteTorch(model, path).ok());
    EXPECT_THAT(*ReadTextFile(path, 1 << 20), testing::StartsWith("\"\"\"v____import_os_: "));
    EXPECT_EQ(PythonIdentifier("a.b\n"), "a_b_");
    EXPECT_EQ(PythonIdentifier("_slice"), "v_slice");
    EXPECT_EQ(PythonIdentifier("torch"), "torch_");
}

}  // namespace
}  // namespace fornax::graph

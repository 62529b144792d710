// Compiled partitions that are whole, damaged, or of another model's weights.
#include "plugins/onnxruntime/context_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/onnxruntime/partition_compiler.h"

namespace fornax::onnxruntime_plugin {
namespace {

using onnx_frontend::InitializerValues;
using testing::HasSubstr;

// y = x + w, rows of 3.
onnx::ModelProto Partition(const InitializerValues& weights) {
    onnx::ModelProto model;
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    onnx::GraphProto& graph = *model.mutable_graph();
    graph.set_doc_string(DigestOf(weights));
    onnx::ValueInfoProto& input = *graph.add_input();
    input.set_name("x");
    auto& type = *input.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_param("n");
    type.mutable_shape()->add_dim()->set_dim_value(3);
    onnx::TensorProto& weight = *graph.add_initializer();
    weight.set_name("w");
    weight.set_data_type(onnx::TensorProto::FLOAT);
    weight.add_dims(3);
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Add");
    node.add_input("x");
    node.add_input("w");
    node.add_output("y");
    graph.add_output()->set_name("y");
    return model;
}

InitializerValues Weights(float last) {
    const std::vector<float> values = {1, 2, last};
    return {{"w", graph::Tensor::FromFloats({3}, values)}};
}

TEST(ContextBytes, APartitionIsReadAgainAndCompiled) {
    const InitializerValues weights = Weights(3);
    const Result<Context> context = ParseContext(SerializeContext(Partition(weights)));
    ASSERT_TRUE(context.ok()) << context.error().message;
    const auto& model = std::get<onnx::ModelProto>(*context);
    EXPECT_TRUE(CheckPartition(model.graph(), weights).ok());
    runtime::CompileRequest request;
    request.input_shapes["x"] = {4, 3};
    const Result<runtime::CompiledModel> compiled = CompilePartition(model, weights, request);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    // The plan has the weight for itself.
    for (const graph::PlanBlock& block : compiled->plan.blocks) {
        EXPECT_TRUE(!block.data || block.data->data() != weights.at("w").data->data());
    }
}

TEST(ContextBytes, DamageIsToldWhereverItIs) {
    const std::string whole = SerializeContext(Partition(Weights(3)));
    for (size_t at = 0; at < whole.size(); ++at) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ 1);
        EXPECT_THAT(ParseContext(changed).error().message, HasSubstr("a compiled partition")) << at;
        EXPECT_FALSE(ParseContext(whole.substr(0, at)).ok()) << at;
    }
}

TEST(ContextBytes, OtherConstantsAreRefused) {
    const onnx::ModelProto model = Partition(Weights(3));
    EXPECT_THAT(CheckPartition(model.graph(), Weights(4)).error().message,
                HasSubstr("was made with other constants than the model has"));
    EXPECT_THAT(CheckPartition(model.graph(), {}).error().message,
                HasSubstr("needs the constant w"));
    InitializerValues column = Weights(3);
    column.at("w").dims = {3, 1};
    EXPECT_THAT(CheckPartition(model.graph(), column).error().message,
                HasSubstr("has the constant w as of type 1 and 1 dimensions, the model as f32[3,"));
    onnx::ModelProto fixed = model;
    auto& type = *fixed.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
    type.mutable_shape()->mutable_dim(0)->set_dim_value(2);
    EXPECT_THAT(CheckPartition(fixed.graph(), Weights(3)).error().message,
                HasSubstr("has no open sizes"));
}

// A file beside the model is not read, wherever it is said to be.
TEST(ContextBytes, ExternalDataAreRefused) {
    onnx::ModelProto model = Partition({});
    onnx::TensorProto& weight = *model.mutable_graph()->mutable_initializer(0);
    weight.set_raw_data("x");
    weight.set_data_location(onnx::TensorProto::EXTERNAL);
    auto& location = *weight.add_external_data();
    location.set_key("location");
    location.set_value("/etc/passwd");
    ASSERT_TRUE(CheckPartition(model.graph(), {}).ok());
    EXPECT_THAT(CompilePartition(model, {}, {}).error().message, HasSubstr("in another file"));
}

}  // namespace
}  // namespace fornax::onnxruntime_plugin

// Messages with constants elsewhere, and what is told of nodes that are not imported.
#include "compiler/frontends/onnx/model_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/frontends/onnx/tensor_proto.h"
#include "compiler/graph/interpret/interpreter.h"

namespace fornax::onnx_frontend {
namespace {

using graph::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

void SetType(onnx::ValueInfoProto* value,
             const std::string& name,
             std::initializer_list<int64_t> dims) {
    value->set_name(name);
    auto* tensor = value->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(onnx::TensorProto::FLOAT);
    tensor->mutable_shape();
    for (const int64_t dim : dims) {
        tensor->mutable_shape()->add_dim()->set_dim_value(dim);
    }
}

onnx::ModelProto MakeModel() {
    onnx::ModelProto model;
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    SetType(model.mutable_graph()->add_input(), "x", {2, 3});
    return model;
}

void AddNode(onnx::ModelProto& model,
             const std::string& op,
             const std::vector<std::string>& inputs,
             const std::string& output) {
    onnx::NodeProto* node = model.mutable_graph()->add_node();
    node->set_op_type(op);
    for (const std::string& input : inputs) {
        node->add_input(input);
    }
    node->add_output(output);
}

std::string TakeAll(const graph::Graph&, const graph::Node&) {
    return "";
}

std::string NoHostCalls(const graph::Graph&, const graph::Node& node) {
    return graph::Is<graph::op::HostCall>(node.operation) ? "it is a function of the host" : "";
}

TEST(ModelMessage, ConstantsAreTakenFromElsewhere) {
    onnx::ModelProto model = MakeModel();
    onnx::TensorProto* weight = model.mutable_graph()->add_initializer();
    weight->set_name("w");
    weight->set_data_type(onnx::TensorProto::FLOAT);
    weight->add_dims(3);
    AddNode(model, "Add", {"x", "w"}, "y");
    model.mutable_graph()->add_output()->set_name("y");
    const std::vector<float> values = {1, 20, 300};
    const InitializerValues weights = {{"w", Tensor::FromFloats({3}, values)}};
    const Result<ImportedModel> imported = ImportModelMessage(model, "test", weights, {});
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    const Result<std::vector<Tensor>> results = graph::Interpret(
        imported->graph, std::vector{Tensor::FromFloats({2, 3}, std::vector<float>(6, 0.5F))}, {});
    ASSERT_TRUE(results.ok()) << results.error().message;
    EXPECT_EQ((*results)[0].At(1).number, 20.5);
    EXPECT_EQ((*results)[0].At(5).number, 300.5);
}

TEST(ModelMessage, NodesAreCheckedOneByOne) {
    onnx::ModelProto model = MakeModel();
    AddNode(model, "Relu", {"x"}, "a");
    AddNode(model, "Unheard", {"a"}, "b");
    AddNode(model, "Tanh", {"b"}, "c");
    AddNode(model, "Unheard", {"a"}, "d");
    AddNode(model, "Tanh", {"d"}, "e");
    AddNode(model, "NonZero", {"a"}, "f");
    AddNode(model, "ReduceSum", {"c"}, "g");
    model.mutable_graph()->mutable_node(6)->add_attribute()->set_name("keepdims");
    model.mutable_graph()->mutable_node(6)->mutable_attribute(0)->set_type(
        onnx::AttributeProto::INT);
    // Nothing is known of d.
    SetType(model.mutable_graph()->add_value_info(), "b", {4});
    const Result<NodeCheck> check = CheckNodes(model, {}, {}, NoHostCalls);
    ASSERT_TRUE(check.ok()) << check.error().message;
    EXPECT_THAT(check->reasons,
                ElementsAre("", HasSubstr("does not have this operator"), "",
                            HasSubstr("does not have this operator"),
                            HasSubstr("its input d is not"), "it is a function of the host", ""));
    EXPECT_THAT(check->ranks, UnorderedElementsAre(Pair("a", 2), Pair("c", 1), Pair("g", 0)));
}

TEST(ModelMessage, AnUnknownVersionIsAnError) {
    onnx::ModelProto model = MakeModel();
    model.mutable_opset_import(0)->set_version(1000);
    AddNode(model, "Relu", {"x"}, "a");
    const Result<NodeCheck> check = CheckNodes(model, {}, {}, TakeAll);
    ASSERT_FALSE(check.ok());
    EXPECT_THAT(check.error().message, HasSubstr("1000"));
}

}  // namespace
}  // namespace fornax::onnx_frontend

// What is read of a model's inputs without importing it, and files that are no models.
#include "compiler/frontends/onnx/model_inputs.h"

#include <onnx/onnx_pb.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fornax::onnx_frontend {
namespace {

using ::testing::HasSubstr;

onnx::TypeProto::Tensor* AddInput(onnx::ModelProto& model, const std::string& name, int32_t type) {
    onnx::ValueInfoProto* input = model.mutable_graph()->add_input();
    input->set_name(name);
    onnx::TypeProto::Tensor* tensor = input->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    return tensor;
}

onnx::ModelProto SomeModel() {
    onnx::ModelProto model;
    model.set_ir_version(8);
    onnx::TensorProto* weight = model.mutable_graph()->add_initializer();
    weight->set_raw_data(std::string(100'000, 'w'));
    weight->set_name("weight");
    model.mutable_graph()->add_sparse_initializer()->mutable_values()->set_name("sparse");
    auto* shape = AddInput(model, "image", onnx::TensorProto::FLOAT)->mutable_shape();
    shape->add_dim()->set_dim_param("batch");
    shape->add_dim()->set_dim_value(3);
    shape->add_dim();
    shape->add_dim()->set_dim_value(-1);
    shape->add_dim()->set_dim_param("?");
    AddInput(model, "weight", onnx::TensorProto::FLOAT);
    AddInput(model, "sparse", onnx::TensorProto::FLOAT);
    AddInput(model, "any", onnx::TensorProto::INT64);
    onnx::ValueInfoProto* list = model.mutable_graph()->add_input();
    list->set_name("list");
    list->mutable_type()->mutable_sequence_type();
    return model;
}

Result<std::vector<ModelInput>> ReadInputs(const std::string& bytes, const std::string& name) {
    FORNAX_ASSIGN_OR_RETURN(ModelPorts ports,
                            ReadModelPorts(std::as_bytes(std::span(bytes)), name));
    return std::move(ports.inputs);
}

TEST(ModelInputs, AreThoseWithoutAConstant) {
    const auto inputs = ReadInputs(SomeModel().SerializeAsString(), "m.onnx");
    ASSERT_TRUE(inputs.ok()) << inputs.error().message;
    ASSERT_EQ(inputs->size(), 3u);
    EXPECT_EQ((*inputs)[0].name, "image");
    EXPECT_TRUE((*inputs)[0].has_shape);
    EXPECT_EQ((*inputs)[0].type->ToString(), "f32[batch,3,image.2,image.3,image.4]");
    EXPECT_EQ((*inputs)[1].name, "any");
    EXPECT_FALSE((*inputs)[1].has_shape);
    EXPECT_EQ((*inputs)[1].type->element, graph::ElementType::kI64);
    EXPECT_FALSE((*inputs)[2].type.has_value());
}

TEST(ModelInputs, OutputsAreCounted) {
    onnx::ModelProto model;
    AddInput(model, "x", onnx::TensorProto::FLOAT);
    for (const char* name : {"y", "z"}) {
        model.mutable_graph()->add_output()->set_name(name);
    }
    auto bytes = model.SerializeAsString();
    auto ports = ReadModelPorts(std::as_bytes(std::span(bytes)), "m.onnx");
    ASSERT_TRUE(ports.ok()) << ports.error().message;
    EXPECT_EQ(ports->output_count, 2u);
    EXPECT_TRUE(ports->has_only_tensors);
    model.mutable_graph()->mutable_output(1)->mutable_type()->mutable_sequence_type();
    bytes = model.SerializeAsString();
    ports = ReadModelPorts(std::as_bytes(std::span(bytes)), "m.onnx");
    ASSERT_TRUE(ports.ok()) << ports.error().message;
    EXPECT_FALSE(ports->has_only_tensors);
}

TEST(ModelInputs, DamagedFilesAreNoModels) {
    const std::string good = SomeModel().SerializeAsString();
    for (const std::string& bytes :
         {std::string(), std::string("hello"), std::string(100, '\0'), good.substr(0, 90'000),
          good.substr(0, good.size() - 1), std::string(1000, '\x0a')}) {
        const auto inputs = ReadInputs(bytes, "m.onnx");
        ASSERT_FALSE(inputs.ok());
        EXPECT_EQ(inputs.error().message, "m.onnx: it is not an ONNX model, or it is cut short.");
    }
    onnx::ModelProto strange = SomeModel();
    strange.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
        99);
    EXPECT_THAT(ReadInputs(strange.SerializeAsString(), "m.onnx").error().message,
                HasSubstr("m.onnx: "));
}

}  // namespace
}  // namespace fornax::onnx_frontend

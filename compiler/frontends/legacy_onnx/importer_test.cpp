// Models built message by message: what they become, and the exact sentence when they cannot be
// imported.
#include "compiler/frontends/legacy_onnx/importer.h"

#include <onnx/onnx_pb.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fornax::legacy_onnx {
namespace {

using ::testing::HasSubstr;

class ModelBuilder {
  public:
    ModelBuilder() {
        model.set_ir_version(8);
        onnx::OperatorSetIdProto* opset = model.add_opset_import();
        opset->set_domain("");
        opset->set_version(13);
        model.mutable_graph()->set_name("net");
    }

    // A dimension of 0 stands for the symbolic N, of -1 for the symbolic M.
    void Input(const std::string& name, const std::vector<int64_t>& dims) {
        onnx::ValueInfoProto* input = model.mutable_graph()->add_input();
        input->set_name(name);
        onnx::TypeProto::Tensor* tensor = input->mutable_type()->mutable_tensor_type();
        tensor->set_elem_type(onnx::TensorProto::FLOAT);
        for (int64_t size : dims) {
            auto* dim = tensor->mutable_shape()->add_dim();
            if (size > 0) {
                dim->set_dim_value(size);
            } else {
                dim->set_dim_param(size == 0 ? "N" : "M");
            }
        }
    }
    onnx::NodeProto* Node(const std::string& op_type,
                          const std::vector<std::string>& inputs,
                          const std::string& output) {
        onnx::NodeProto* node = model.mutable_graph()->add_node();
        node->set_op_type(op_type);
        node->set_name("the_" + output);
        for (const std::string& input : inputs) {
            node->add_input(input);
        }
        node->add_output(output);
        return node;
    }
    onnx::TensorProto* Floats(const std::string& name,
                              const std::vector<int64_t>& dims,
                              const std::vector<float>& values) {
        onnx::TensorProto* tensor = model.mutable_graph()->add_initializer();
        tensor->set_name(name);
        tensor->set_data_type(onnx::TensorProto::FLOAT);
        for (int64_t dim : dims) {
            tensor->add_dims(dim);
        }
        for (float value : values) {
            tensor->add_float_data(value);
        }
        return tensor;
    }
    void Output(const std::string& name) { model.mutable_graph()->add_output()->set_name(name); }

    // The imported graph as text, or the error.
    std::string Import(const ImportOptions& options = {}) const {
        Result<legacy_graph::Graph> graph =
            ImportModelBytes(model.SerializeAsString(), "net.onnx", options);
        return graph.ok() ? legacy_graph::ToText(*graph) : graph.error().message;
    }

    onnx::ModelProto model;
};

TEST(Importer, SymbolicDimensions) {
    ModelBuilder b;
    b.Input("x", {0, -1});
    b.Node("Relu", {"x"}, "y");
    b.Output("y");
    EXPECT_EQ(b.Import({.batch = 4, .dimensions = {{"M", 5}}}),
              "%0 x: f32[4x5] = input\n%1 y: f32[4x5] = unary(%0) activation=relu\nreturn y=%1\n");
    EXPECT_THAT(b.Import({.batch = 4, .dimensions = {{"M", 5}, {"N", 2}}}), HasSubstr("f32[2x5]"));
    EXPECT_EQ(b.Import({.batch = 4}),
              "net.onnx: the input x: the size of its dimension M is not known; give it one.");
    EXPECT_THAT(b.Import({.batch = 0, .dimensions = {{"M", 5}}}), HasSubstr("dimension of 0"));
}

TEST(Importer, GemmBecomesAProductAndASum) {
    ModelBuilder b;
    b.Input("x", {2, 3});
    b.Floats("w", {1, 3}, {1, 2, 3});
    b.Floats("c", {1}, {4});
    onnx::AttributeProto* attribute = b.Node("Gemm", {"x", "w", "c"}, "y")->add_attribute();
    attribute->set_name("transB");
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(1);
    b.Output("y");
    EXPECT_EQ(b.Import(),
              "%0 w: f32[1x3] = constant\n"
              "%1 c: f32[1] = constant\n"
              "%2 x: f32[2x3] = input\n"
              "%3 the_y: f32[3x1] = transpose(%0) permutation=[1,0]\n"
              "%4 the_y: f32[2x1] = matmul(%2, %3)\n"
              "%5 y: f32[2x1] = binary(%4, %1) function=add\n"
              "return y=%5\n");
}

TEST(Importer, ShapesAreComputedNowAndThenDropped) {
    ModelBuilder b;
    b.Input("x", {2, 3, 4});
    b.Node("Shape", {"x"}, "shape");
    onnx::TensorProto* index = b.model.mutable_graph()->add_initializer();
    index->set_name("two");
    index->set_data_type(onnx::TensorProto::INT64);
    index->add_dims(1);
    index->add_int64_data(2);
    b.Node("Gather", {"shape", "two"}, "width");
    onnx::TensorProto* minus_one = b.model.mutable_graph()->add_initializer();
    minus_one->set_name("minus_one");
    minus_one->set_data_type(onnx::TensorProto::INT64);
    minus_one->add_dims(1);
    minus_one->add_int64_data(-1);
    onnx::AttributeProto* axis =
        b.Node("Concat", {"width", "minus_one"}, "target")->add_attribute();
    axis->set_name("axis");
    axis->set_type(onnx::AttributeProto::INT);
    axis->set_i(0);
    b.Node("Reshape", {"x", "target"}, "y");
    b.Output("y");
    EXPECT_EQ(b.Import(),
              "%0 x: f32[2x3x4] = input\n%1 y: f32[4x6] = reshape(%0) shape=4x6\nreturn y=%1\n");
}

// An empty name stands for an optional input that is not there; Concat has none.
TEST(Importer, ConcatWantsAllItsInputs) {
    ModelBuilder b;
    onnx::TensorProto* one = b.model.mutable_graph()->add_initializer();
    one->set_name("one");
    one->set_data_type(onnx::TensorProto::INT64);
    one->add_dims(1);
    one->add_int64_data(1);
    onnx::AttributeProto* axis = b.Node("Concat", {"one", ""}, "y")->add_attribute();
    axis->set_name("axis");
    axis->set_type(onnx::AttributeProto::INT);
    axis->set_i(0);
    b.Output("y");
    EXPECT_THAT(b.Import(), HasSubstr("its input 1 is missing"));
}

TEST(Importer, InitializersMayBeListedAsInputs) {
    ModelBuilder b;
    b.Input("x", {2});
    b.Input("w", {2});
    b.Floats("w", {2}, {1, 2});
    b.Node("Mul", {"x", "w"}, "y");
    b.Output("y");
    EXPECT_THAT(b.Import(), HasSubstr("w: f32[2] = constant"));
}

TEST(Importer, ErrorsNameFileNodeAndReason) {
    {
        ModelBuilder b;
        b.Input("x", {2, 3});
        b.Node("Einsum", {"x"}, "y");
        b.Output("y");
        EXPECT_EQ(b.Import(), "net.onnx: the node the_y (Einsum): the operator is not supported.");
    }
    {
        ModelBuilder b;
        b.Input("x", {2, 3});
        b.Node("MatMul", {"x", "x"}, "y");
        b.Output("y");
        EXPECT_EQ(b.Import(),
                  "net.onnx: the node the_y (MatMul): the inner dimensions of 2x3 and 2x3 differ.");
    }
    {
        ModelBuilder b;
        b.Input("x", {2});
        b.Floats("w", {3}, {1, 2});
        b.Node("Add", {"x", "w"}, "y");
        b.Output("y");
        EXPECT_EQ(b.Import(),
                  "net.onnx: the initializer w: 2 values do not fill the 3 elements of 3.");
    }
    {
        ModelBuilder b;
        b.Input("x", {2});
        b.model.mutable_opset_import(0)->set_version(99);
        EXPECT_EQ(b.Import(), "net.onnx: the version of its operator set: 99 is not in 7..21.");
    }
    {
        ModelBuilder b;
        b.Input("x", {2});
        b.Output("y");
        EXPECT_EQ(b.Import(), "net.onnx: the output y: it is computed by no node.");
    }
    {
        ModelBuilder b;
        b.Input("x", {2});
        b.Node("Relu", {"x"}, "y")->set_name("evil\x1B[2J");
        b.model.mutable_graph()->mutable_node(0)->set_op_type("None\n");
        EXPECT_EQ(b.Import(),
                  "net.onnx: the node evil?[2J (None?): the operator is not supported.");
    }
    EXPECT_EQ(ImportModelBytes("not a model", "x.onnx", {}).error().message,
              "x.onnx: the file is not an ONNX model.");
}

TEST(Importer, DeclaredOutputShapesAreChecked) {
    ModelBuilder b;
    b.Input("x", {2, 3});
    b.Node("Relu", {"x"}, "y");
    b.Output("y");
    auto* shape = b.model.mutable_graph()
                      ->mutable_output(0)
                      ->mutable_type()
                      ->mutable_tensor_type()
                      ->mutable_shape();
    shape->add_dim()->set_dim_param("anything");
    shape->add_dim()->set_dim_value(4);
    EXPECT_EQ(b.Import(), "net.onnx: the output y: its shape is 2x3, not the declared one.");
}

}  // namespace
}  // namespace fornax::legacy_onnx

// Models built message by message: what they become, and the exact sentence when they cannot be
// imported. What operators compute is the subject of ONNX's node tests (tests/graph/onnx_nodes.py).
#include "compiler/frontends/onnx/importer.h"

#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/frontends/onnx/tensor_proto.h"
#include "compiler/graph/build/build_error.h"
#include "compiler/graph/host/host_functions.h"
#include "compiler/graph/interpret/interpreter.h"

namespace fornax::onnx_frontend {
namespace {

using graph::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Dimensions as in "2,n,": a number, a name, or neither.
void SetType(onnx::ValueInfoProto* value,
             const std::string& name,
             const std::string& dims,
             int32_t type) {
    value->set_name(name);
    auto* tensor = value->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    std::istringstream list(dims);
    for (std::string dim; std::getline(list, dim, ',');) {
        auto* proto = tensor->mutable_shape()->add_dim();
        if (dim.find_first_not_of("-0123456789") == std::string::npos && !dim.empty()) {
            proto->set_dim_value(std::stoll(dim));
        } else if (!dim.empty()) {
            proto->set_dim_param(dim);
        }
    }
}

onnx::NodeProto* AddNode(auto* graph,
                         const std::string& op,
                         const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs) {
    onnx::NodeProto* node = graph->add_node();
    node->set_op_type(op);
    node->set_name("the_" + outputs[0]);
    for (const std::string& input : inputs) {
        node->add_input(input);
    }
    for (const std::string& output : outputs) {
        node->add_output(output);
    }
    return node;
}

onnx::AttributeProto* AddAttribute(onnx::NodeProto* node,
                                   const std::string& name,
                                   onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(type);
    return attribute;
}

void AddIntegers(onnx::GraphProto* graph,
                 const std::string& name,
                 const std::vector<int64_t>& values) {
    onnx::TensorProto* tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->add_dims(static_cast<int64_t>(values.size()));
    for (const int64_t value : values) {
        tensor->add_int64_data(value);
    }
}

class Importer : public ::testing::Test {
  protected:
    Importer() {
        model.set_ir_version(10);
        model.add_opset_import()->set_version(21);
        net->set_name("net");
    }
    void Input(const std::string& name,
               const std::string& dims,
               int32_t type = onnx::TensorProto::FLOAT) {
        SetType(net->add_input(), name, dims, type);
    }
    void Output(const std::string& name) { net->add_output()->set_name(name); }

    Result<ImportedModel> Import() {
        return ImportModel(model.SerializeAsString(), "net.onnx", directory, options);
    }
    std::string ErrorOf() {
        const Result<ImportedModel> result = Import();
        return result.ok() ? "" : result.error().message;
    }
    graph::Graph Imported() {
        Result<ImportedModel> result = Import();
        EXPECT_EQ(result.ok() ? "" : result.error().message, "");
        return result.ok() ? std::move(result->graph) : graph::Graph();
    }
    // The first output for these inputs.
    std::vector<float> Run(const graph::Graph& graph, const std::vector<Tensor>& inputs) {
        graph::InterpretOptions interpret;
        interpret.host_functions = &graph::StandardHostFunctions();
        const Result<std::vector<Tensor>> results = Interpret(graph, inputs, interpret);
        EXPECT_EQ(results.ok() ? "" : results.error().message, "");
        std::vector<float> values;
        for (int64_t i = 0; results.ok() && i < (*results)[0].count(); ++i) {
            const Tensor& tensor = (*results)[0];
            values.push_back(static_cast<float>(tensor.At(i).ToDouble(tensor.element)));
        }
        return values;
    }
    static Tensor Floats(std::vector<int64_t> dims, const std::vector<float>& values) {
        return Tensor::FromFloats(std::move(dims), values);
    }

    onnx::ModelProto model;
    onnx::GraphProto* net = model.mutable_graph();
    ImportOptions options;
    std::string directory;
};

TEST_F(Importer, NamedDimensionsStaySymbols) {
    Input("x", "batch,tokens,8");
    AddNode(net, "Shape", {"x"}, {"sizes"});
    AddIntegers(net, "first_two", {0, 1});
    AddNode(net, "Gather", {"sizes", "first_two"}, {"outer"});
    AddIntegers(net, "heads", {2, -1});
    AddAttribute(AddNode(net, "Concat", {"outer", "heads"}, {"shape"}), "axis",
                 onnx::AttributeProto::INT);
    AddNode(net, "Reshape", {"x", "shape"}, {"y"});
    Output("y");
    options.dims = {{"batch", 2}, {"tokens", 5}};
    const graph::Graph graph = Imported();
    EXPECT_EQ(graph.TypeOf(graph.outputs()[0].value).ToString(), "f32[batch,tokens,2,4]");
    EXPECT_THAT(graph.sizes().guards(), IsEmpty());
    EXPECT_EQ(graph.sizes().hints().at(graph::Symbol("tokens")), 5);
    // The computed shape is no node of its own.
    EXPECT_EQ(graph.nodes().size(), 1U);
}

TEST_F(Importer, GivenShapesAreHintsForNamesAndSizesForTheRest) {
    Input("x", "n,,3");
    AddNode(net, "Relu", {"x"}, {"y"});
    Output("y");
    options.input_shapes["x"] = {7, 9, 3};
    const graph::Graph graph = Imported();
    EXPECT_EQ(graph.TypeOf(graph.inputs()[0]).ToString(), "f32[n,x.1,3]");
    EXPECT_EQ(graph.sizes().hints().at(graph::Symbol("n")), 7);
    EXPECT_EQ(graph.sizes().hints().at(graph::Symbol("x.1")), 9);
    options.input_shapes["x"] = {7, 9, 4};
    EXPECT_EQ(ErrorOf(), "net.onnx: dimension 2 of the input x is 3, not 4.");
}

// Paddle writes the first, Paddle and MXNet the second.
TEST_F(Importer, MinusOneAndQuestionMarksAreSizesWithoutAName) {
    Input("x", "-1,3,?,?");
    AddNode(net, "Relu", {"x"}, {"y"});
    Output("y");
    EXPECT_EQ(Imported().TypeOf(Imported().inputs()[0]).ToString(), "f32[x.0,3,x.2,x.3]");
    net->mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_value(-2);
    EXPECT_EQ(ErrorOf(), "net.onnx: the input x has a dimension of -2.");
}

TEST_F(Importer, ErrorsNameTheNode) {
    Input("x", "2,3");
    AddNode(net, "Transpose", {"x"}, {"y"});
    AddAttribute(net->mutable_node(0), "perm", onnx::AttributeProto::INTS)->add_ints(0);
    Output("y");
    EXPECT_EQ(ErrorOf(),
              "net.onnx: the node the_y (Transpose): it has an order of 1 axes for [2,3].");
}

TEST_F(Importer, MissingInputsAndOutputsAreErrors) {
    Input("x", "2,3");
    AddNode(net, "Add", {"x"}, {"y"});
    Output("y");
    EXPECT_EQ(ErrorOf(),
              "net.onnx: the node the_y (Add): it lacks input 1 of the 2 that it needs.");
    net->mutable_node(0)->add_input("z");
    EXPECT_EQ(ErrorOf(),
              "net.onnx: the node the_y (Add): its input z is not the name of an earlier value.");
    net->mutable_node(0)->set_input(1, "x");
    net->mutable_output(0)->set_name("w");
    EXPECT_EQ(ErrorOf(), "net.onnx: its output w is not the name of a value.");
}

TEST_F(Importer, OtherVersionsAreRefused) {
    Input("x", "2");
    AddNode(net, "Relu", {"x"}, {"y"});
    Output("y");
    model.mutable_opset_import(0)->set_version(99);
    EXPECT_EQ(ErrorOf(), "net.onnx: the version of its operator set, 99, is not in 1..28.");
    model.mutable_opset_import(0)->set_version(5);
    EXPECT_THAT(ErrorOf(), HasSubstr("6 is the first that Fornax has of this operator"));
}

// Until version 6 an attribute says where the second operand's axes are among the first's.
TEST_F(Importer, OperandsOfVersion6AreLinedUpByAnAxis) {
    model.mutable_opset_import(0)->set_version(6);
    Input("x", "1,2,2");
    Input("b", "2");
    onnx::NodeProto* node = AddNode(net, "Add", {"x", "b"}, {"y"});
    AddAttribute(node, "broadcast", onnx::AttributeProto::INT)->set_i(1);
    AddAttribute(node, "axis", onnx::AttributeProto::INT)->set_i(1);
    Output("y");
    const Tensor x = Floats({1, 2, 2}, {1, 2, 3, 4}), b = Floats({2}, {10, 20});
    EXPECT_THAT(Run(Imported(), {x, b}), ElementsAre(11, 12, 23, 24));
    node->set_op_type("PRelu");
    node->clear_attribute();
    EXPECT_THAT(Run(Imported(), {Floats({1, 2, 2}, {-1, 2, -3, -4}), b}),
                ElementsAre(-10, 2, -60, -80));
    model.mutable_opset_import(0)->set_version(7);
    EXPECT_THAT(Run(Imported(), {Floats({1, 2, 2}, {-1, 2, -3, -4}), b}),
                ElementsAre(-10, 2, -30, -80));
}

TEST(Tensors, RawDataAreTakenWithoutACopy) {
    onnx::TensorProto proto;
    proto.set_data_type(1);
    proto.add_dims(300);
    proto.set_raw_data(std::string(1200, '\x01'));
    const void* data = proto.raw_data().data();
    const graph::Tensor tensor = TakeTensor(proto, "");
    EXPECT_EQ(tensor.data->data(), data);
    EXPECT_EQ(tensor.data->size(), 1200u);
    EXPECT_FALSE(proto.has_raw_data());
    // What memory holds in another form is a copy.
    proto.set_data_type(9);
    proto.set_raw_data(std::string(300, '\x02'));
    EXPECT_EQ(TakeTensor(proto, "").At(299).integer, 1);
    proto.set_data_type(1);
    proto.set_raw_data("too short");
    EXPECT_THROW(TakeTensor(proto, ""), graph::BuildError);
}

TEST_F(Importer, BytesThatAreNoModel) {
    const Result<ImportedModel> result = ImportModel("not a model", "x.onnx", "", {});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().message, "x.onnx: it is not an ONNX model, or it is cut short.");
}

TEST_F(Importer, FunctionsAreInlinedWithTheirAttributes) {
    model.add_opset_import()->set_domain("my");
    Input("x", "2");
    onnx::NodeProto* call = AddNode(net, "Scale", {"x"}, {"y"});
    call->set_domain("my");
    AddAttribute(call, "by", onnx::AttributeProto::FLOAT)->set_f(3);
    Output("y");
    onnx::FunctionProto* function = model.add_functions();
    function->set_domain("my");
    function->set_name("Scale");
    function->add_input("a");
    function->add_output("b");
    onnx::NodeProto* constant = AddNode(function, "Constant", {}, {"factor"});
    AddAttribute(constant, "value_float", onnx::AttributeProto::FLOAT)->set_ref_attr_name("by");
    AddNode(function, "Mul", {"a", "factor"}, {"b"});
    EXPECT_THAT(Run(Imported(), {Floats({2}, {1, 2})}), ElementsAre(3, 6));
}

TEST_F(Importer, FunctionsThatCallThemselvesEnd) {
    model.add_opset_import()->set_domain("my");
    Input("x", "2");
    AddNode(net, "F", {"x"}, {"y"})->set_domain("my");
    Output("y");
    onnx::FunctionProto* function = model.add_functions();
    function->set_domain("my");
    function->set_name("F");
    function->add_input("a");
    function->add_output("b");
    AddNode(function, "F", {"a"}, {"b"})->set_domain("my");
    EXPECT_THAT(ErrorOf(), HasSubstr("nested deeper than the limit of 64"));
}

class ExternalData : public Importer {
  public:
    ~ExternalData() override {
        std::filesystem::remove_all(std::filesystem::path(directory).parent_path());
    }

  protected:
    ExternalData() {
        const auto base =
            std::filesystem::temp_directory_path() / ("fornax_onnx_" + std::to_string(::getpid()));
        std::filesystem::create_directories(base / "model");
        directory = base / "model";
        outside = base / "outside.bin";
        for (const std::filesystem::path& path : {outside, base / "model" / "data.bin"}) {
            std::ofstream file(path, std::ios::binary);
            const float values[] = {0, 5, 6};
            file.write(reinterpret_cast<const char*>(values), sizeof(values));
        }
        onnx::TensorProto* tensor = net->add_initializer();
        tensor->set_name("w");
        tensor->set_data_type(onnx::TensorProto::FLOAT);
        tensor->add_dims(2);
        tensor->set_data_location(onnx::TensorProto::EXTERNAL);
        Set("location", "data.bin");
        Set("offset", "4");
        Set("length", "8");
        Input("x", "2");
        AddNode(net, "Add", {"x", "w"}, {"y"});
        Output("y");
    }
    void Set(const std::string& key, const std::string& value) {
        onnx::TensorProto* tensor = net->mutable_initializer(0);
        for (auto& entry : *tensor->mutable_external_data()) {
            if (entry.key() == key) {
                entry.set_value(value);
                return;
            }
        }
        auto* entry = tensor->add_external_data();
        entry->set_key(key);
        entry->set_value(value);
    }
    std::filesystem::path outside;
};

TEST_F(ExternalData, IsReadAtItsOffset) {
    EXPECT_THAT(Run(Imported(), {Floats({2}, {1, 1})}), ElementsAre(6, 7));
}

TEST_F(ExternalData, HasToBeInTheModelsDirectory) {
    for (const std::string& path : {std::string("../outside.bin"), outside.string()}) {
        Set("location", path);
        EXPECT_THAT(ErrorOf(), HasSubstr("is not in the model's directory")) << path;
    }
    std::filesystem::create_symlink(outside, std::filesystem::path(directory) / "link");
    Set("location", "link");
    EXPECT_THAT(ErrorOf(), HasSubstr("is not in the model's directory"));
}

TEST_F(ExternalData, HasToFitTheTensor) {
    Set("offset", "8");
    EXPECT_EQ(
        ErrorOf(),
        "net.onnx: the initializer w: its data file \"data.bin\" has 12 bytes, but the tensor "
        "is 8 at 8.");
    Set("offset", "-1");
    EXPECT_THAT(ErrorOf(), HasSubstr("have the offset or length \"-1\""));
    Set("offset", "0");
    Set("length", "12");
    EXPECT_THAT(ErrorOf(), HasSubstr("its external data are 12 bytes, its shape takes 8"));
}

TEST_F(Importer, InitializersHaveToHoldTheirElements) {
    onnx::TensorProto* tensor = net->add_initializer();
    tensor->set_name("w");
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->add_dims(int64_t{1} << 39);
    tensor->set_raw_data("abcd");
    Output("w");
    EXPECT_EQ(ErrorOf(),
              "net.onnx: the initializer w: its data are 4 bytes, its shape takes "
              "2199023255552.");
    tensor->add_dims(4);
    EXPECT_THAT(ErrorOf(), HasSubstr("it has more than 1099511627776 elements"));
    tensor->set_dims(1, -1);
    EXPECT_THAT(ErrorOf(), HasSubstr("a dimension is -1"));
}

// A branch that multiplies x by `factor`.
void FillBranch(onnx::GraphProto* branch, float factor) {
    onnx::NodeProto* constant = AddNode(branch, "Constant", {}, {"factor"});
    AddAttribute(constant, "value_float", onnx::AttributeProto::FLOAT)->set_f(factor);
    AddNode(branch, "Mul", {"x", "factor"}, {"product"});
    branch->add_output()->set_name("product");
}

TEST_F(Importer, ConditionsOfDataBecomeIfNodes) {
    Input("x", "n");
    Input("c", "", onnx::TensorProto::BOOL);
    onnx::NodeProto* node = AddNode(net, "If", {"c"}, {"y"});
    FillBranch(AddAttribute(node, "then_branch", onnx::AttributeProto::GRAPH)->mutable_g(), 2);
    FillBranch(AddAttribute(node, "else_branch", onnx::AttributeProto::GRAPH)->mutable_g(), 3);
    Output("y");
    const graph::Graph graph = Imported();
    uint8_t* flag = nullptr;
    const Tensor no = Tensor::Zeros(graph::ElementType::kBool, {}, &flag);
    EXPECT_THAT(Run(graph, {Floats({2}, {1, 2}), no}), ElementsAre(3, 6));
    const Tensor yes = Tensor::Zeros(graph::ElementType::kBool, {}, &flag);
    *flag = 1;
    EXPECT_THAT(Run(graph, {Floats({2}, {1, 2}), yes}), ElementsAre(2, 4));
}

TEST_F(Importer, LoopsRunAsOftenAsTheDataSay) {
    Input("x", "n");
    Input("count", "", onnx::TensorProto::INT64);
    onnx::NodeProto* node = AddNode(net, "Loop", {"count", "", "x"}, {"y"});
    onnx::GraphProto* body = AddAttribute(node, "body", onnx::AttributeProto::GRAPH)->mutable_g();
    SetType(body->add_input(), "i", "", onnx::TensorProto::INT64);
    SetType(body->add_input(), "go", "", onnx::TensorProto::BOOL);
    SetType(body->add_input(), "v", "n", onnx::TensorProto::FLOAT);
    AddNode(body, "Add", {"v", "x"}, {"next"});
    body->add_output()->set_name("go");
    body->add_output()->set_name("next");
    Output("y");
    const graph::Graph graph = Imported();
    for (const int64_t count : {0, 3, 20}) {
        const Tensor times = Tensor::FromIntegers({}, {&count, 1});
        EXPECT_THAT(Run(graph, {Floats({1}, {1}), times}),
                    ElementsAre(1 + static_cast<float>(count)));
    }
}

// Scan outputs have as many slices as there were iterations. No input becomes fixed by that.
TEST_F(Importer, LoopsEndWhenTheDataSay) {
    Input("x", "1");
    Input("bound", "1");
    Input("go_at_all", "", onnx::TensorProto::BOOL);
    onnx::TensorProto* most = net->add_initializer();
    most->set_name("most");
    most->set_data_type(onnx::TensorProto::INT64);
    most->add_int64_data(0);
    onnx::NodeProto* node = AddNode(net, "Loop", {"most", "go_at_all", "x"}, {"last", "y"});
    onnx::GraphProto* body = AddAttribute(node, "body", onnx::AttributeProto::GRAPH)->mutable_g();
    SetType(body->add_input(), "i", "", onnx::TensorProto::INT64);
    SetType(body->add_input(), "go", "", onnx::TensorProto::BOOL);
    SetType(body->add_input(), "v", "1", onnx::TensorProto::FLOAT);
    AddNode(body, "Add", {"v", "x"}, {"next"});
    AddNode(body, "Identity", {"next"}, {"each"});
    AddNode(body, "Less", {"next", "bound"}, {"more"});
    for (const char* name : {"more", "next", "each"}) {
        body->add_output()->set_name(name);
    }
    Output("y");
    options.input_values["x"] = Floats({1}, {1});
    options.input_values["bound"] = Floats({1}, {9});
    uint8_t* flag = nullptr;
    const Tensor no = Tensor::Zeros(graph::ElementType::kBool, {}, &flag);
    const Tensor yes = Tensor::Zeros(graph::ElementType::kBool, {}, &flag);
    *flag = 1;
    for (const int64_t count : {4, 20}) {
        most->set_int64_data(0, count);
        const Result<ImportedModel> imported = Import();
        ASSERT_TRUE(imported.ok()) << imported.error().message;
        EXPECT_THAT(imported->fixed_inputs, ElementsAre());
        const auto run = [&](float bound, const Tensor& go) {
            return Run(imported->graph, {Floats({1}, {1}), Floats({1}, {bound}), go});
        };
        EXPECT_THAT(run(3.5, yes), ElementsAre(2, 3, 4));
        EXPECT_THAT(run(0, yes), ElementsAre(2));
        EXPECT_EQ(run(100, yes).size(), static_cast<size_t>(count));
        EXPECT_THAT(run(100, no), ElementsAre());
    }
}

TEST_F(Importer, InputsThatDecideShapesBecomeFixed) {
    Input("x", "6");
    Input("shape", "2", onnx::TensorProto::INT64);
    AddNode(net, "Reshape", {"x", "shape"}, {"y"});
    Output("y");
    EXPECT_EQ(ErrorOf(), "net.onnx: the node the_y (Reshape): the shape depends on the data.");
    options.input_values["shape"] = Tensor::FromIntegers({2}, std::vector<int64_t>{2, -1});
    options.input_values["x"] = Floats({6}, {0, 1, 2, 3, 4, 5});
    const Result<ImportedModel> result = Import();
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_THAT(result->fixed_inputs, ElementsAre("shape"));
    EXPECT_EQ(result->graph.TypeOf(result->graph.outputs()[0].value).ToString(), "f32[2,3]");
}

TEST_F(Importer, RangesAreOfOneNumberEach) {
    Input("x", "n");
    onnx::TensorProto* nothing = net->add_initializer();
    nothing->set_name("nothing");
    nothing->set_data_type(onnx::TensorProto::INT64);
    nothing->add_dims(0);
    onnx::TensorProto* one = net->add_initializer();
    one->set_name("one");
    one->set_data_type(onnx::TensorProto::INT64);
    one->add_int64_data(1);
    onnx::NodeProto* node = AddNode(net, "Range", {"nothing", "one", "one"}, {"y"});
    Output("y");
    EXPECT_THAT(ErrorOf(), HasSubstr("the node the_y (Range): the start"));
    node->set_input(0, "one");
    node->set_input(1, "nothing");
    EXPECT_THAT(ErrorOf(), HasSubstr("the node the_y (Range): the limit"));
}

TEST_F(Importer, SizesOfResultsMayDependOnTheData) {
    Input("x", "n");
    AddNode(net, "NonZero", {"x"}, {"places"});
    AddNode(net, "Cast", {"places"}, {"y"});
    AddAttribute(net->mutable_node(1), "to", onnx::AttributeProto::INT)->set_i(1);
    Output("y");
    EXPECT_THAT(Run(Imported(), {Floats({4}, {0, 3, 0, 1})}), ElementsAre(1, 3));
    options.strict = true;
    EXPECT_EQ(ErrorOf(), "net.onnx: the node the_places (nonzero) would run on the host.");
}

// The graph's Loop has one type of all iterations, and names no size that its body's host calls
// tell.
TEST_F(Importer, SizesWithinLoopsMayDependOnTheData) {
    Input("x", "n");
    Input("count", "", onnx::TensorProto::INT64);
    onnx::NodeProto* node = AddNode(net, "Loop", {"count", ""}, {"y"});
    onnx::GraphProto* body = AddAttribute(node, "body", onnx::AttributeProto::GRAPH)->mutable_g();
    SetType(body->add_input(), "i", "", onnx::TensorProto::INT64);
    SetType(body->add_input(), "go", "", onnx::TensorProto::BOOL);
    AddNode(body, "Unique", {"x"}, {"values"});
    body->add_output()->set_name("go");
    body->add_output()->set_name("values");
    Output("y");
    const Tensor times = Tensor::FromIntegers({}, std::vector<int64_t>{20});
    options.input_values["count"] = times;
    const graph::Graph graph = Imported();
    EXPECT_EQ(graph.TypeOf(graph.outputs()[0].value).shape.rank(), 2);
    const std::vector<float> result = Run(graph, {Floats({4}, {0, 3, 0, 1}), times});
    ASSERT_EQ(result.size(), 60);
    EXPECT_THAT(std::span(result).last(3), ElementsAre(0, 1, 3));
}

TEST_F(Importer, SequencesAreListsOfValues) {
    Input("x", "2");
    AddNode(net, "SequenceConstruct", {"x", "x"}, {"s"});
    AddNode(net, "SequenceInsert", {"s", "x"}, {"t"});
    Output("t");
    const Result<ImportedModel> result = Import();
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->output_lengths.at("t"), 3);
    EXPECT_EQ(result->graph.outputs()[2].name, "t.2");
}

TEST_F(Importer, SparseInitializers) {
    onnx::SparseTensorProto* sparse = net->add_sparse_initializer();
    sparse->add_dims(2);
    sparse->add_dims(2);
    onnx::TensorProto* values = sparse->mutable_values();
    values->set_name("w");
    values->set_data_type(onnx::TensorProto::FLOAT);
    values->add_dims(1);
    values->add_float_data(5);
    onnx::TensorProto* indices = sparse->mutable_indices();
    indices->set_data_type(onnx::TensorProto::INT64);
    indices->add_dims(1);
    indices->add_int64_data(2);
    Output("w");
    EXPECT_THAT(Run(Imported(), {}), ElementsAre(0, 0, 5, 0));
    indices->set_int64_data(0, 4);
    EXPECT_EQ(ErrorOf(),
              "net.onnx: the initializer w: its sparse tensor's index 4 is not in its shape.");
}

}  // namespace
}  // namespace fornax::onnx_frontend

// Random changes of ONNX models, guided by ONNX's schemas of operators.
#include "compiler/frontends/onnx/fuzz_mutations.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "compiler/frontends/onnx/node.h"

namespace fornax::onnx_frontend {
namespace {

using Random = std::mt19937;

uint32_t Below(Random& random, size_t limit) {
    return static_cast<uint32_t>(random() % limit);
}

bool OneIn(Random& random, uint32_t count) {
    return Below(random, count) == 0;
}

int64_t Number(Random& random) {
    switch (Below(random, 12)) {
        case 0:
            return -1 - static_cast<int64_t>(Below(random, 4));
        case 1:
            return static_cast<int64_t>(uint64_t{1} << Below(random, 64));
        case 2:
            return std::numeric_limits<int64_t>::max() - Below(random, 3);
        case 3:
            return Below(random, 300);
        default:
            return Below(random, 5);
    }
}

float Float(Random& random) {
    switch (Below(random, 8)) {
        case 0:
            return std::numeric_limits<float>::quiet_NaN();
        case 1:
            return std::numeric_limits<float>::infinity();
        case 2:
            return static_cast<float>(Number(random));
        default:
            return static_cast<float>(static_cast<int>(Below(random, 64)) - 32) / 8;
    }
}

struct KnownOperator {
    std::string domain;
    std::string name;
};

// The operators that the importer knows, sorted.
const std::vector<KnownOperator>& Operators() {
    static const std::vector<KnownOperator> operators = [] {
        std::map<std::pair<std::string, std::string>, bool> known;
        for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas()) {
            const std::string domain = schema.domain();
            if (FindOperator(domain, schema.Name()) != nullptr) {
                known[{domain, schema.Name()}] = true;
            }
        }
        std::vector<KnownOperator> sorted;
        for (const auto& [key, value] : known) {
            sorted.push_back({key.first, key.second});
        }
        return sorted;
    }();
    return operators;
}

const onnx::OpSchema* SchemaOf(const onnx::NodeProto& node) {
    return onnx::OpSchemaRegistry::Schema(node.op_type(), node.domain());
}

template <typename Elements>
auto* AnyOf(Elements* elements, Random& random) {
    return elements->empty() ? nullptr
                             : elements->Mutable(static_cast<int>(
                                   Below(random, static_cast<size_t>(elements->size()))));
}

int32_t AnyType(Random& random) {
    // Mostly the everyday ones; 0 and those behind the last are no types.
    constexpr int32_t kUsual[] = {1, 1, 1, 7, 7, 6, 9, 10, 11, 2, 3, 8};
    return OneIn(random, 3) ? static_cast<int32_t>(Below(random, 28))
                            : kUsual[Below(random, std::size(kUsual))];
}

void FillTensor(onnx::TensorProto& tensor, Random& random) {
    tensor.clear_dims();
    tensor.clear_float_data();
    tensor.clear_int32_data();
    tensor.clear_int64_data();
    tensor.clear_string_data();
    tensor.clear_raw_data();
    const int32_t type = AnyType(random);
    tensor.set_data_type(type);
    int64_t elements = 1;
    for (uint32_t rank = type == 7 ? Below(random, 2) : Below(random, 5); rank != 0; --rank) {
        const int64_t size = Below(random, 4) + (OneIn(random, 8) ? 0 : 1);
        tensor.add_dims(size);
        elements *= size;
    }
    for (int64_t i = 0; i < elements; ++i) {
        if (type == onnx::TensorProto::FLOAT) {
            tensor.add_float_data(Float(random));
        } else if (type == onnx::TensorProto::INT64) {
            tensor.add_int64_data(Number(random));
        } else if (type == onnx::TensorProto::STRING) {
            tensor.add_string_data(OneIn(random, 2) ? "abc" : "");
        } else {
            tensor.add_int32_data(static_cast<int32_t>(Number(random)));
        }
    }
}

void ChangeTensor(onnx::TensorProto& tensor, Random& random) {
    switch (Below(random, 6)) {
        case 0:
            if (tensor.dims_size() != 0) {
                tensor.set_dims(static_cast<int>(Below(random, size_t(tensor.dims_size()))),
                                Number(random));
            }
            return;
        case 1:
            return tensor.set_data_type(AnyType(random));
        case 2:
            if (tensor.int64_data_size() != 0) {
                tensor.set_int64_data(
                    static_cast<int>(Below(random, size_t(tensor.int64_data_size()))),
                    Number(random));
            } else if (tensor.has_raw_data() && tensor.raw_data().size() >= 8) {
                std::string& raw = *tensor.mutable_raw_data();
                raw[Below(random, raw.size())] = static_cast<char>(Below(random, 256));
            }
            return;
        case 3:
            tensor.set_data_location(onnx::TensorProto::EXTERNAL);
            tensor.add_external_data()->set_key("location");
            tensor.mutable_external_data()->rbegin()->set_value("../weights");
            return;
        default:
            return FillTensor(tensor, random);
    }
}

void SetShape(onnx::TypeProto& type, Random& random) {
    onnx::TypeProto::Tensor& tensor = *type.mutable_tensor_type();
    tensor.set_elem_type(AnyType(random));
    if (OneIn(random, 16)) {
        return tensor.clear_shape();
    }
    tensor.mutable_shape()->Clear();
    for (uint32_t rank = Below(random, OneIn(random, 16) ? 20 : 5); rank != 0; --rank) {
        onnx::TensorShapeProto::Dimension* dim = tensor.mutable_shape()->add_dim();
        if (OneIn(random, 4)) {
            dim->set_dim_param(OneIn(random, 2) ? "batch" : "n");
        } else {
            dim->set_dim_value(OneIn(random, 12) ? Number(random) : Below(random, 6) + 1);
        }
    }
}

void ChangeType(onnx::TypeProto& type, Random& random) {
    const onnx::TypeProto old = type;
    switch (Below(random, 8)) {
        case 0:
            *type.mutable_sequence_type()->mutable_elem_type() = old;
            return;
        case 1:
            *type.mutable_optional_type()->mutable_elem_type() = old;
            return;
        case 2:
            if (type.has_tensor_type()) {
                type.mutable_tensor_type()->set_elem_type(AnyType(random));
            }
            return;
        case 3: {
            auto* dim =
                type.has_tensor_type()
                    ? AnyOf(type.mutable_tensor_type()->mutable_shape()->mutable_dim(), random)
                    : nullptr;
            if (dim != nullptr) {
                dim->set_dim_value(Number(random));
            }
            return;
        }
        default:
            return SetShape(type, random);
    }
}

// A value's name, mostly one of the last of the graph; or one of `outer`.
std::string AnyValue(const onnx::GraphProto& graph,
                     const std::vector<std::string>& outer,
                     Random& random) {
    std::vector<std::string> names = outer;
    names.emplace_back();
    for (const auto& input : graph.input()) {
        names.push_back(input.name());
    }
    for (const auto& tensor : graph.initializer()) {
        names.push_back(tensor.name());
    }
    for (const auto& node : graph.node()) {
        names.insert(names.end(), node.output().begin(), node.output().end());
    }
    const size_t back = std::min(Below(random, names.size()), Below(random, names.size()));
    return names[names.size() - 1 - back];
}

// Gives the node one of its operator's attributes, mostly of the right type.
void SetAttribute(onnx::NodeProto& node, Random& random) {
    const onnx::OpSchema* schema = SchemaOf(node);
    if (schema == nullptr || schema->attributes().empty()) {
        return;
    }
    auto chosen = schema->attributes().begin();
    std::advance(chosen, Below(random, schema->attributes().size()));
    onnx::AttributeProto* attribute = nullptr;
    for (onnx::AttributeProto& present : *node.mutable_attribute()) {
        attribute = present.name() == chosen->first ? &present : attribute;
    }
    attribute = attribute == nullptr ? node.add_attribute() : attribute;
    if (attribute->has_g()) {
        return;
    }
    attribute->Clear();
    attribute->set_name(chosen->first);
    attribute->set_type(OneIn(random, 32)
                            ? static_cast<onnx::AttributeProto::AttributeType>(Below(random, 15))
                            : chosen->second.type);
    attribute->set_i(Number(random));
    attribute->set_f(Float(random));
    constexpr const char* kTexts[] = {"SAME_UPPER", "SAME_LOWER",    "VALID",   "linear",
                                      "cubic",      "bidirectional", "reverse", "Tanh",
                                      "add",        "none",          "mean",    "ij,jk->ik"};
    attribute->set_s(kTexts[Below(random, std::size(kTexts))]);
    for (uint32_t i = Below(random, 6); i != 0; --i) {
        attribute->add_ints(Number(random));
        attribute->add_floats(Float(random));
        attribute->add_strings(kTexts[Below(random, std::size(kTexts))]);
    }
    if (attribute->type() == onnx::AttributeProto::TENSOR) {
        FillTensor(*attribute->mutable_t(), random);
    }
    if (attribute->type() == onnx::AttributeProto::GRAPH) {
        onnx::GraphProto& graph = *attribute->mutable_g();
        graph.add_input()->set_name(node.output_size() == 0 ? "i" : node.output(0) + "i");
        graph.add_output()->set_name(graph.input(0).name());
    }
}

void AddConstant(onnx::GraphProto& graph, const std::string& name, Random& random) {
    onnx::TensorProto* tensor = graph.add_initializer();
    tensor->set_name(name);
    FillTensor(*tensor, random);
}

void AddNode(onnx::GraphProto& graph,
             const std::vector<std::string>& outer,
             const std::string& name,
             Random& random) {
    const KnownOperator& chosen = Operators()[Below(random, Operators().size())];
    onnx::NodeProto node;
    node.set_op_type(chosen.name);
    node.set_domain(chosen.domain);
    const onnx::OpSchema* schema = SchemaOf(node);
    const int inputs = schema == nullptr ? 1 : std::min(schema->min_input(), 8);
    for (int i = 0; i < inputs + (OneIn(random, 4) ? 1 : 0); ++i) {
        if (i != 0 && OneIn(random, 2)) {
            AddConstant(graph, name + "_" + std::to_string(i), random);
            node.add_input(graph.initializer().rbegin()->name());
        } else {
            node.add_input(AnyValue(graph, outer, random));
        }
    }
    node.add_output(name);
    for (int i = 1; schema != nullptr && i < std::min(schema->min_output(), 4); ++i) {
        node.add_output(name + "o" + std::to_string(i));
    }
    for (uint32_t i = Below(random, 3); i != 0; --i) {
        SetAttribute(node, random);
    }
    *graph.add_node() = node;
    if (graph.output_size() == 0 || OneIn(random, 8)) {
        graph.add_output();
    }
    // The declared shape would have to be the new value's.
    onnx::ValueInfoProto& output = *AnyOf(graph.mutable_output(), random);
    output.Clear();
    output.set_name(name);
}

// Puts a node into a branch or an iteration of its own.
void Wrap(onnx::GraphProto& graph, const std::string& name, Random& random) {
    onnx::NodeProto* node = AnyOf(graph.mutable_node(), random);
    if (node == nullptr) {
        return;
    }
    const onnx::NodeProto inner = *node;
    const bool loop = OneIn(random, 2);
    onnx::NodeProto outer;
    outer.set_op_type(loop ? "Loop" : "If");
    onnx::GraphProto body;
    onnx::TensorProto* condition = (loop ? body : graph).add_initializer();
    condition->set_name(name + "c");
    condition->set_data_type(onnx::TensorProto::BOOL);
    condition->add_int32_data(OneIn(random, 4) ? 0 : 1);
    if (loop) {
        AddConstant(graph, name + "n", random);
        onnx::TensorProto& trips = *graph.mutable_initializer()->rbegin();
        trips.Clear();
        trips.set_name(name + "n");
        trips.set_data_type(onnx::TensorProto::INT64);
        trips.add_int64_data(Number(random));
        outer.add_input(name + "n");
        outer.add_input("");
        body.add_input()->set_name(name + "i");
        body.add_input()->set_name(name + "ci");
        body.add_output()->set_name(name + "c");
    } else {
        outer.add_input(name + "c");
    }
    *body.add_node() = inner;
    for (int i = 0; i < inner.output_size(); ++i) {
        body.mutable_node(0)->set_output(i, name + "b" + std::to_string(i));
        body.add_output()->set_name(name + "b" + std::to_string(i));
        outer.add_output(inner.output(i));
    }
    for (const char* attribute_name : {"then_branch", "else_branch", "body"}) {
        if (loop == (std::string(attribute_name) == "body")) {
            onnx::AttributeProto* attribute = outer.add_attribute();
            attribute->set_name(attribute_name);
            attribute->set_type(onnx::AttributeProto::GRAPH);
            *attribute->mutable_g() = body;
        }
    }
    *node = outer;
}

// Makes a node a call of a function that has this node, or of one that calls itself.
void MakeFunction(onnx::ModelProto& model,
                  onnx::NodeProto& node,
                  const std::string& name,
                  Random& random) {
    onnx::FunctionProto* function = model.add_functions();
    function->set_domain("test");
    function->set_name(name);
    for (int i = 0; i < node.input_size(); ++i) {
        function->add_input("x" + std::to_string(i));
    }
    *function->add_node() = node;
    onnx::NodeProto& inner = *function->mutable_node(0);
    for (int i = 0; i < node.input_size(); ++i) {
        inner.set_input(i, function->input(i));
    }
    for (int i = 0; i < node.output_size(); ++i) {
        function->add_output("y" + std::to_string(i));
        inner.set_output(i, function->output(i));
    }
    for (const onnx::OperatorSetIdProto& import : model.opset_import()) {
        *function->add_opset_import() = import;
    }
    node.set_op_type(name);
    node.set_domain("test");
    node.clear_attribute();
    if (OneIn(random, 8)) {
        inner.set_op_type(name);
        inner.set_domain("test");
    }
}

struct Place {
    onnx::GraphProto* graph;
    std::vector<std::string> outer;
};

// A graph of the model: its own, or one inside of it.
Place AnyGraph(onnx::GraphProto& graph, std::vector<std::string> outer, Random& random) {
    std::vector<onnx::GraphProto*> inside;
    for (onnx::NodeProto& node : *graph.mutable_node()) {
        for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
            if (attribute.has_g()) {
                inside.push_back(attribute.mutable_g());
            }
        }
    }
    if (inside.empty() || OneIn(random, 2)) {
        return {&graph, std::move(outer)};
    }
    outer.push_back(AnyValue(graph, {}, random));
    return AnyGraph(*inside[Below(random, inside.size())], std::move(outer), random);
}

void ChangeNode(onnx::ModelProto& model,
                const Place& place,
                onnx::NodeProto& node,
                const std::string& name,
                Random& random) {
    switch (Below(random, 8)) {
        case 0: {
            const KnownOperator& chosen = Operators()[Below(random, Operators().size())];
            node.set_op_type(chosen.name);
            return node.set_domain(chosen.domain);
        }
        case 1:
            return node.add_input(AnyValue(*place.graph, place.outer, random));
        case 2:
        case 3:
            if (node.input_size() != 0) {
                *AnyOf(node.mutable_input(), random) = AnyValue(*place.graph, place.outer, random);
            }
            return;
        case 4:
            if (node.output_size() != 0 && OneIn(random, 4)) {
                *AnyOf(node.mutable_output(), random) = AnyValue(*place.graph, place.outer, random);
            }
            return;
        case 5:
            return MakeFunction(model, node, name, random);
        default:
            return SetAttribute(node, random);
    }
}

void ChangeGraph(onnx::ModelProto& model,
                 const Place& place,
                 const std::string& name,
                 Random& random) {
    onnx::GraphProto& graph = *place.graph;
    onnx::NodeProto* node = AnyOf(graph.mutable_node(), random);
    onnx::TensorProto* tensor = AnyOf(graph.mutable_initializer(), random);
    onnx::ValueInfoProto* input = AnyOf(graph.mutable_input(), random);
    onnx::ValueInfoProto* output = AnyOf(graph.mutable_output(), random);
    switch (node == nullptr ? 0 : Below(random, 16)) {
        case 0:
        case 1:
        case 2:
            return AddNode(graph, place.outer, name, random);
        case 3:
            graph.add_input()->set_name(name);
            return SetShape(*graph.mutable_input()->rbegin()->mutable_type(), random);
        case 4:
        case 5:
            if (tensor != nullptr) {
                ChangeTensor(*tensor, random);
            }
            return;
        case 6:
        case 7:
            if (input != nullptr) {
                ChangeType(*input->mutable_type(), random);
            }
            return;
        case 8:
            if (output != nullptr) {
                output->set_name(AnyValue(graph, place.outer, random));
            }
            return;
        case 9:
            return Wrap(graph, name, random);
        case 10: {
            onnx::NodeProto* other = AnyOf(graph.mutable_node(), random);
            return OneIn(random, 4) ? graph.mutable_node()->RemoveLast() : node->Swap(other);
        }
        default:
            return ChangeNode(model, place, *node, name, random);
    }
}

void Rename(onnx::GraphProto& graph, const std::string& prefix) {
    const auto rename = [&](std::string& name) { name = name.empty() ? name : prefix + name; };
    for (auto& input : *graph.mutable_input()) {
        rename(*input.mutable_name());
    }
    for (auto& output : *graph.mutable_output()) {
        rename(*output.mutable_name());
    }
    for (auto& tensor : *graph.mutable_initializer()) {
        rename(*tensor.mutable_name());
    }
    for (auto& node : *graph.mutable_node()) {
        std::for_each(node.mutable_input()->begin(), node.mutable_input()->end(), rename);
        std::for_each(node.mutable_output()->begin(), node.mutable_output()->end(), rename);
        for (auto& attribute : *node.mutable_attribute()) {
            if (attribute.has_g()) {
                Rename(*attribute.mutable_g(), prefix);
            }
        }
    }
}

}  // namespace

void ChangeModel(onnx::ModelProto& model, Random& random) {
    onnx::GraphProto& graph = *model.mutable_graph();
    if (model.opset_import_size() == 0 || OneIn(random, 64)) {
        model.clear_opset_import();
        model.add_opset_import()->set_version(7 + Below(random, 23));
    }
    const std::string name = "v" + std::to_string(random() % 100000);
    if (graph.input_size() == 0) {
        graph.add_input()->set_name(name + "x");
        SetShape(*graph.mutable_input(0)->mutable_type(), random);
    }
    ChangeGraph(model, AnyGraph(graph, {}, random), name, random);
}

void JoinModels(onnx::ModelProto& first, const onnx::ModelProto& second, Random& random) {
    onnx::GraphProto added = second.graph();
    Rename(added, "j" + std::to_string(random() % 1000));
    onnx::GraphProto& graph = *first.mutable_graph();
    // An input of the second becomes an Identity of a value of the first.
    for (const onnx::ValueInfoProto& input : added.input()) {
        if (OneIn(random, 2)) {
            onnx::NodeProto* node = graph.add_node();
            node->set_op_type("Identity");
            node->add_input(AnyValue(graph, {}, random));
            node->add_output(input.name());
        } else {
            *graph.add_input() = input;
        }
    }
    graph.mutable_initializer()->MergeFrom(added.initializer());
    graph.mutable_node()->MergeFrom(added.node());
    graph.mutable_output()->MergeFrom(added.output());
    first.mutable_functions()->MergeFrom(second.functions());
    if (OneIn(random, 2)) {
        *first.mutable_opset_import() = second.opset_import();
    }
}

}  // namespace fornax::onnx_frontend

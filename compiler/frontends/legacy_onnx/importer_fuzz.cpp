// Coverage-guided fuzzing of the importer and the compiler behind it: any bytes as a model.
#include "compiler/frontends/legacy_onnx/importer.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>

#include "base/fuzz_outcomes.h"
#include "compiler/frontends/legacy_onnx/node_importer.h"
#include "compiler/legacy_graph/compile.h"

namespace {

using Random = std::mt19937;

uint32_t Below(Random& random, size_t limit) {
    return static_cast<uint32_t>(random() % limit);
}

int64_t Number(Random& random) {
    switch (Below(random, 8)) {
        case 0:
            return -1 - static_cast<int64_t>(Below(random, 4));
        case 1:
            return static_cast<int64_t>(uint64_t{1} << Below(random, 64));
        case 2:
            return Below(random, 300);
        default:
            return Below(random, 5);
    }
}

// The names of operators that the importer knows, sorted.
const std::vector<std::string>& Operators() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> known;
        for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas()) {
            if (fornax::legacy_onnx::FindOperator(schema.Name()) != nullptr) {
                known.push_back(schema.Name());
            }
        }
        std::sort(known.begin(), known.end());
        return known;
    }();
    return names;
}

void AddConstant(onnx::GraphProto& graph, const std::string& name, Random& random) {
    onnx::TensorProto* tensor = graph.add_initializer();
    tensor->set_name(name);
    const bool integers = Below(random, 2) == 0;
    int64_t elements = 1;
    for (uint32_t rank = integers ? 1 : Below(random, 5); rank != 0; --rank) {
        const int64_t size = Below(random, 4) + (Below(random, 8) == 0 ? 0 : 1);
        tensor->add_dims(size);
        elements *= size;
    }
    tensor->set_data_type(integers ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT);
    for (int64_t i = 0; i < elements; ++i) {
        if (integers) {
            tensor->add_int64_data(Number(random));
        } else {
            tensor->add_float_data(static_cast<float>(Number(random)));
        }
    }
}

void AddInput(onnx::GraphProto& graph, const std::string& name, Random& random) {
    onnx::ValueInfoProto* input = graph.add_input();
    input->set_name(name);
    onnx::TypeProto::Tensor* type = input->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    type->mutable_shape();
    for (uint32_t rank = Below(random, 6); rank != 0; --rank) {
        type->mutable_shape()->add_dim()->set_dim_value(Below(random, 6) + 1);
    }
}

// A value's name, mostly one of the last.
std::string AnyValue(const onnx::GraphProto& graph, Random& random) {
    std::vector<std::string> names = {""};
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
void SetAttribute(onnx::NodeProto& node, int64_t opset, Random& random) {
    const onnx::OpSchema* schema =
        onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(opset), "");
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
    attribute->Clear();
    attribute->set_name(chosen->first);
    attribute->set_type(chosen->second.type);
    attribute->set_i(Number(random));
    attribute->set_f(static_cast<float>(Number(random)));
    constexpr const char* kPadding[] = {"SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"};
    attribute->set_s(kPadding[Below(random, std::size(kPadding))]);
    for (uint32_t i = Below(random, 6); i != 0; --i) {
        attribute->add_ints(Number(random));
        attribute->add_floats(static_cast<float>(Number(random)));
    }
}

void AddNode(onnx::ModelProto& model, int64_t opset, const std::string& name, Random& random) {
    onnx::GraphProto& graph = *model.mutable_graph();
    const std::string operation = Operators()[Below(random, Operators().size())];
    const size_t required = fornax::legacy_onnx::FindOperator(operation)->required_inputs;
    onnx::NodeProto node;
    node.set_op_type(operation);
    for (size_t i = 0; i < required + (Below(random, 4) == 0 ? 1 : 0); ++i) {
        if (i != 0 && Below(random, 2) == 0) {
            AddConstant(graph, name + "_" + std::to_string(i), random);
            node.add_input(graph.initializer().rbegin()->name());
        } else {
            node.add_input(AnyValue(graph, random));
        }
    }
    for (uint32_t i = Below(random, 3); i != 0; --i) {
        SetAttribute(node, opset, random);
    }
    node.add_output(name);
    *graph.add_node() = node;
    if (graph.output_size() == 0 || Below(random, 8) == 0) {
        graph.add_output();
    }
    // The declared shape would have to be the new value's.
    onnx::ValueInfoProto& output = *graph.mutable_output(
        static_cast<int>(Below(random, static_cast<size_t>(graph.output_size()))));
    output.Clear();
    output.set_name(name);
}

template <typename Elements>
auto* AnyOf(Elements* elements, Random& random) {
    return elements->empty() ? nullptr
                             : elements->Mutable(static_cast<int>(
                                   Below(random, static_cast<size_t>(elements->size()))));
}

void ChangeModel(onnx::ModelProto& model, Random& random) {
    onnx::GraphProto& graph = *model.mutable_graph();
    if (model.opset_import_size() == 0 || Below(random, 32) == 0) {
        model.clear_opset_import();
        model.add_opset_import()->set_version(7 + Below(random, 15));
    }
    const int64_t opset = model.opset_import(0).version();
    const std::string name = "v" + std::to_string(random());
    if (graph.input_size() == 0) {
        AddInput(graph, name + "x", random);
    }
    onnx::NodeProto* node = AnyOf(graph.mutable_node(), random);
    onnx::TensorProto* tensor = AnyOf(graph.mutable_initializer(), random);
    onnx::ValueInfoProto* input = AnyOf(graph.mutable_input(), random);
    switch (node == nullptr ? 0 : Below(random, 10)) {
        case 0:
        case 1:
        case 2:
            return AddNode(model, opset, name, random);
        case 3:
            return AddInput(graph, name, random);
        case 4:
            return SetAttribute(*node, opset, random);
        case 5:
            return node->set_op_type(Operators()[Below(random, Operators().size())]);
        case 6:
            return node->add_input(AnyValue(graph, random));
        case 7:
            if (node->input_size() != 0) {
                *AnyOf(node->mutable_input(), random) = AnyValue(graph, random);
            }
            return;
        case 8:
            if (tensor != nullptr && tensor->dims_size() != 0) {
                tensor->set_dims(0, Number(random));
            }
            return;
        default:
            if (input->type().tensor_type().shape().dim_size() != 0) {
                AnyOf(input->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(),
                      random)
                    ->set_dim_value(Number(random));
            }
            return;
    }
}

}  // namespace

// libFuzzer's own change of bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Changed bytes seldom leave a model, changed nodes do.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t max_size,
                                          unsigned seed) {
    Random random(seed);
    onnx::ModelProto model;
    if (Below(random, 10) == 0) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    if (!model.ParseFromArray(data, static_cast<int>(size)) || !model.has_graph()) {
        model.Clear();
    }
    for (uint32_t changes = Below(random, 4) + 1; changes != 0; --changes) {
        ChangeModel(model, random);
    }
    const std::string bytes = model.SerializeAsString();
    if (bytes.size() > max_size) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    std::ranges::copy(bytes, reinterpret_cast<char*>(data));
    return bytes.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    fornax::Result<fornax::legacy_graph::Graph> graph =
        fornax::legacy_onnx::ImportModelBytes(bytes, "fuzz", {.batch = 2, .dimensions = {}});
    if (!graph.ok()) {
        fornax::FuzzOutcomes::Count(false);
        return 0;
    }
    const fornax::Result<fornax::legacy_graph::Plan> plan =
        fornax::legacy_graph::Compile(std::move(*graph), {});
    fornax::FuzzOutcomes::Count(plan.ok());
    // An internal error is a bug of a pass or of lowering, and so is a plan that no one may run.
    if (plan.ok() ? !fornax::legacy_graph::ValidatePlan(*plan).ok()
                  : plan.error().code != fornax::ErrorCode::kUnsupported) {
        std::abort();
    }
    return 0;
}

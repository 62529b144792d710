#include "plugins/onnxruntime/capture.h"

#include <fmt/format.h>

namespace fornax::onnxruntime_plugin {
namespace {

// Constants up to here are copied into the message: shapes, axes and the like.
constexpr size_t kMaxCopiedBytes = 1024;
constexpr int kMaxDepth = 32;

// A type as a message, if it is a tensor of a type that we have.
bool WriteType(const ValueType& type, onnx::TypeProto& proto) {
    if (!type.is_tensor() || !ElementOf(type.number)) {
        return false;
    }
    auto& tensor = *proto.mutable_tensor_type();
    tensor.set_elem_type(static_cast<int32_t>(type.number));
    auto& shape = *tensor.mutable_shape();
    for (size_t i = 0; i < type.dims.size(); ++i) {
        auto& dim = *shape.add_dim();
        if (type.dims[i] >= 0) {
            dim.set_dim_value(type.dims[i]);
        } else if (!type.names[i].empty()) {
            dim.set_dim_param(type.names[i]);
        }
    }
    return true;
}

// Releases what functions of onnxruntime allocate.
using OwnedValue = std::unique_ptr<OrtValue, void (*)(OrtValue*)>;

class Capturer {
  public:
    Capturer(const Api& api, const TrustScalar& trust) : api_(api), trust_(trust) {}

    Result<Capture> Run(const OrtGraph* graph, std::span<const OrtNode* const> nodes) {
        FORNAX_RETURN_IF_ERROR(WriteVersions(graph));
        onnx::GraphProto& proto = *capture_.model.mutable_graph();
        proto.set_name("partition");
        for (const OrtNode* node : nodes) {
            FORNAX_RETURN_IF_ERROR(WriteModelNode(node, proto));
        }
        return std::move(capture_);
    }

  private:
    Status WriteVersions(const OrtGraph* graph) {
        int64_t version = 0;
        size_t count = 0;
        FORNAX_ORT(api_, Graph_GetOnnxIRVersion(graph, &version));
        FORNAX_ORT(api_, Graph_GetNumOperatorSets(graph, &count));
        capture_.model.set_ir_version(version);
        std::vector<const char*> domains(count, nullptr);
        std::vector<int64_t> versions(count, 0);
        FORNAX_ORT(api_, Graph_GetOperatorSets(graph, domains.data(), versions.data(), count));
        for (size_t i = 0; i < count; ++i) {
            auto& import = *capture_.model.add_opset_import();
            import.set_domain(domains[i] == nullptr ? "" : domains[i]);
            import.set_version(versions[i]);
        }
        return OkStatus();
    }

    // A node of the model, with what it reads from outside.
    Status WriteModelNode(const OrtNode* node, onnx::GraphProto& graph) {
        FORNAX_ASSIGN_OR_RETURN(std::vector<const OrtValueInfo*> read, InputsOf(api_, node));
        FORNAX_ASSIGN_OR_RETURN(const std::vector<const OrtValueInfo*> implicit,
                                ImplicitInputsOf(api_, node));
        read.insert(read.end(), implicit.begin(), implicit.end());
        refused_.clear();
        for (const OrtValueInfo* value : read) {
            FORNAX_RETURN_IF_ERROR(Read(value, graph));
        }
        FORNAX_ASSIGN_OR_RETURN(const std::vector<const OrtValueInfo*> written,
                                OutputsOf(api_, node));
        for (const OrtValueInfo* value : written) {
            FORNAX_ASSIGN_OR_RETURN(const std::string name, NameOf(api_, value));
            if (name.empty()) {
                continue;
            }
            known_.insert(name);
            FORNAX_ASSIGN_OR_RETURN(const ValueType type, TypeOf(api_, value));
            CheckEdge(name, type);
            onnx::TypeProto proto;
            if (IsTrusted(name, type) && WriteType(type, proto)) {
                auto& info = *graph.add_value_info();
                info.set_name(name);
                *info.mutable_type() = std::move(proto);
            }
        }
        FORNAX_RETURN_IF_ERROR(WriteNode(node, *graph.add_node(), 0));
        capture_.refused.push_back(refused_);
        return OkStatus();
    }

    bool IsTrusted(const std::string& name, const ValueType& type) const {
        return !type.is_tensor() || !type.dims.empty() || trust_(name);
    }

    void Refuse(std::string reason) {
        if (refused_.empty()) {
            refused_ = std::move(reason);
        }
    }

    // Whether a value could go from or to other providers.
    void CheckEdge(const std::string& name, const ValueType& type) {
        const std::optional<graph::ElementType> element =
            type.is_tensor() ? ElementOf(type.number) : std::nullopt;
        if (!type.is_tensor()) {
            Refuse(fmt::format("{} is not a tensor", name));
        } else if (!element) {
            Refuse(fmt::format("{} has elements of type {}, which are left to onnxruntime", name,
                               static_cast<int>(type.number)));
        } else if (!HasWholeBytes(*element)) {
            Refuse(fmt::format("{} has packed elements of {} bits", name, graph::BitsOf(*element)));
        }
    }

    Status Read(const OrtValueInfo* value, onnx::GraphProto& graph) {
        FORNAX_ASSIGN_OR_RETURN(const std::string name, NameOf(api_, value));
        if (name.empty()) {
            return OkStatus();
        }
        bool is_constant = false;
        FORNAX_ORT(api_, ValueInfo_IsConstantInitializer(value, &is_constant));
        if (is_constant) {
            const OrtValue* tensor = nullptr;
            FORNAX_ORT(api_, ValueInfo_GetInitializerValue(value, &tensor));
            if (tensor != nullptr) {
                return known_.insert(name).second ? WriteInitializer(name, tensor, graph)
                                                  : OkStatus();
            }
        }
        FORNAX_ASSIGN_OR_RETURN(const ValueType type, TypeOf(api_, value));
        CheckEdge(name, type);
        if (!known_.insert(name).second) {
            return OkStatus();
        }
        auto& input = *graph.add_input();
        input.set_name(name);
        onnx::TypeProto proto;
        if (IsTrusted(name, type) && WriteType(type, proto)) {
            *input.mutable_type() = std::move(proto);
        }
        return OkStatus();
    }

    Status WriteInitializer(const std::string& name,
                            const OrtValue* value,
                            onnx::GraphProto& graph) {
        FORNAX_ASSIGN_OR_RETURN(const TensorView view, ViewOf(api_, value));
        const std::optional<graph::ElementType> element = ElementOf(view.number);
        if (!element) {
            Refuse(fmt::format("the constant {} has elements of type {}", name,
                               static_cast<int>(view.number)));
            return OkStatus();
        }
        onnx::TensorProto& tensor = *graph.add_initializer();
        const bool is_copied = view.size_bytes <= kMaxCopiedBytes || !HasWholeBytes(*element);
        WriteTensor(view, is_copied, tensor);
        tensor.set_name(name);
        if (!is_copied) {
            // onnxruntime owns the bytes: capture.h says how long they stay.
            static const auto nobody = std::make_shared<const char>();
            capture_.weights[name] = {
                *element, view.dims,
                graph::Bytes(std::span(static_cast<const uint8_t*>(view.data), view.size_bytes),
                             nobody),
                nullptr};
        }
        return OkStatus();
    }

    static void WriteTensor(const TensorView& view, bool with_data, onnx::TensorProto& tensor) {
        tensor.set_data_type(static_cast<int32_t>(view.number));
        for (const int64_t dim : view.dims) {
            tensor.add_dims(dim);
        }
        if (with_data) {
            tensor.set_raw_data(view.data, view.size_bytes);
        }
    }

    Status WriteNode(const OrtNode* node, onnx::NodeProto& proto, int depth) {
        const char* text = nullptr;
        FORNAX_ORT(api_, Node_GetName(node, &text));
        proto.set_name(text == nullptr ? "" : text);
        FORNAX_ASSIGN_OR_RETURN(*proto.mutable_op_type(), OperatorOf(api_, node));
        FORNAX_ASSIGN_OR_RETURN(*proto.mutable_domain(), DomainOf(api_, node));
        FORNAX_ASSIGN_OR_RETURN(const std::vector<const OrtValueInfo*> inputs,
                                InputsOf(api_, node));
        for (const OrtValueInfo* value : inputs) {
            FORNAX_ASSIGN_OR_RETURN(*proto.add_input(), NameOf(api_, value));
        }
        FORNAX_ASSIGN_OR_RETURN(const std::vector<const OrtValueInfo*> outputs,
                                OutputsOf(api_, node));
        for (const OrtValueInfo* value : outputs) {
            FORNAX_ASSIGN_OR_RETURN(*proto.add_output(), NameOf(api_, value));
        }
        FORNAX_ASSIGN_OR_RETURN(const std::set<std::string> subgraphs,
                                WriteSubgraphs(node, proto, depth));
        size_t count = 0;
        FORNAX_ORT(api_, Node_GetNumAttributes(node, &count));
        std::vector<const OrtOpAttr*> attributes(count, nullptr);
        FORNAX_ORT(api_, Node_GetAttributes(node, attributes.data(), count));
        for (const OrtOpAttr* attribute : attributes) {
            FORNAX_ORT(api_, OpAttr_GetName(attribute, &text));
            if (!subgraphs.contains(text)) {
                FORNAX_RETURN_IF_ERROR(WriteAttribute(text, attribute, proto));
            }
        }
        return OkStatus();
    }

    // Gives the names of the attributes that they are.
    Result<std::set<std::string>> WriteSubgraphs(const OrtNode* node,
                                                 onnx::NodeProto& proto,
                                                 int depth) {
        std::set<std::string> written;
        size_t count = 0;
        FORNAX_ORT(api_, Node_GetNumSubgraphs(node, &count));
        if (depth == kMaxDepth && count != 0) {
            Refuse(fmt::format("its subgraphs are nested deeper than {}", kMaxDepth));
            return written;
        }
        std::vector<const OrtGraph*> graphs(count, nullptr);
        std::vector<const char*> names(count, nullptr);
        FORNAX_ORT(api_, Node_GetSubgraphs(node, graphs.data(), count, names.data()));
        for (size_t i = 0; i < count; ++i) {
            onnx::AttributeProto& attribute = *proto.add_attribute();
            attribute.set_name(names[i]);
            attribute.set_type(onnx::AttributeProto::GRAPH);
            FORNAX_RETURN_IF_ERROR(WriteSubgraph(graphs[i], *attribute.mutable_g(), depth + 1));
            written.insert(names[i]);
        }
        return written;
    }

    Status WriteSubgraph(const OrtGraph* graph, onnx::GraphProto& proto, int depth) {
        size_t count = 0;
        FORNAX_ORT(api_, Graph_GetNumInitializers(graph, &count));
        std::vector<const OrtValueInfo*> values(count, nullptr);
        FORNAX_ORT(api_, Graph_GetInitializers(graph, values.data(), count));
        for (const OrtValueInfo* value : values) {
            FORNAX_ASSIGN_OR_RETURN(const std::string name, NameOf(api_, value));
            const OrtValue* tensor = nullptr;
            FORNAX_ORT(api_, ValueInfo_GetInitializerValue(value, &tensor));
            if (tensor == nullptr) {
                Refuse(fmt::format("the constant {} of its subgraph has no value", name));
                continue;
            }
            FORNAX_ASSIGN_OR_RETURN(const TensorView view, ViewOf(api_, tensor));
            if (!ElementOf(view.number)) {
                Refuse(fmt::format("the constant {} of its subgraph has elements of type {}", name,
                                   static_cast<int>(view.number)));
                continue;
            }
            WriteTensor(view, true, *proto.add_initializer());
            proto.mutable_initializer(proto.initializer_size() - 1)->set_name(name);
        }
        FORNAX_ORT(api_, Graph_GetNumInputs(graph, &count));
        values.assign(count, nullptr);
        FORNAX_ORT(api_, Graph_GetInputs(graph, values.data(), count));
        for (const OrtValueInfo* value : values) {
            FORNAX_ASSIGN_OR_RETURN(*proto.add_input()->mutable_name(), NameOf(api_, value));
        }
        FORNAX_ORT(api_, Graph_GetNumOutputs(graph, &count));
        values.assign(count, nullptr);
        FORNAX_ORT(api_, Graph_GetOutputs(graph, values.data(), count));
        for (const OrtValueInfo* value : values) {
            FORNAX_ASSIGN_OR_RETURN(*proto.add_output()->mutable_name(), NameOf(api_, value));
        }
        FORNAX_ASSIGN_OR_RETURN(const std::vector<const OrtNode*> nodes, NodesOf(api_, graph));
        for (const OrtNode* node : nodes) {
            FORNAX_RETURN_IF_ERROR(WriteNode(node, *proto.add_node(), depth));
        }
        return OkStatus();
    }

    // The bytes of an attribute of one of the types that are read so.
    Result<std::vector<char>> Bytes(const OrtOpAttr* attribute, OrtOpAttrType type) {
        size_t size = 0;
        // Without room it says how much is needed, as an error.
        const Status ignored = api_.Take(api_.ort->ReadOpAttr(attribute, type, nullptr, 0, &size));
        std::vector<char> bytes(size);
        if (size != 0) {
            FORNAX_ORT(api_, ReadOpAttr(attribute, type, bytes.data(), size, &size));
        }
        return bytes;
    }

    template <typename T, typename Field>
    Status WriteNumbers(const OrtOpAttr* attribute, OrtOpAttrType type, Field& field) {
        FORNAX_ASSIGN_OR_RETURN(const std::vector<char> bytes, Bytes(attribute, type));
        for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
            T value;
            std::memcpy(&value, bytes.data() + i, sizeof(T));
            field.Add(value);
        }
        return OkStatus();
    }

    Status WriteAttribute(const std::string& name,
                          const OrtOpAttr* attribute,
                          onnx::NodeProto& node) {
        OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
        FORNAX_ORT(api_, OpAttr_GetType(attribute, &type));
        onnx::AttributeProto proto;
        proto.set_name(name);
        size_t size = 0;
        switch (type) {
            case ORT_OP_ATTR_INT: {
                int64_t value = 0;
                FORNAX_ORT(api_, ReadOpAttr(attribute, type, &value, sizeof value, &size));
                proto.set_i(value);
                proto.set_type(onnx::AttributeProto::INT);
                break;
            }
            case ORT_OP_ATTR_FLOAT: {
                float value = 0;
                FORNAX_ORT(api_, ReadOpAttr(attribute, type, &value, sizeof value, &size));
                proto.set_f(value);
                proto.set_type(onnx::AttributeProto::FLOAT);
                break;
            }
            case ORT_OP_ATTR_INTS:
                FORNAX_RETURN_IF_ERROR(
                    WriteNumbers<int64_t>(attribute, type, *proto.mutable_ints()));
                proto.set_type(onnx::AttributeProto::INTS);
                break;
            case ORT_OP_ATTR_FLOATS:
                FORNAX_RETURN_IF_ERROR(
                    WriteNumbers<float>(attribute, type, *proto.mutable_floats()));
                proto.set_type(onnx::AttributeProto::FLOATS);
                break;
            case ORT_OP_ATTR_STRING: {
                FORNAX_ASSIGN_OR_RETURN(const std::vector<char> bytes, Bytes(attribute, type));
                proto.set_s(bytes.data(), bytes.size());
                proto.set_type(onnx::AttributeProto::STRING);
                break;
            }
            case ORT_OP_ATTR_STRINGS: {
                // One behind the other, each with a 0 at its end.
                FORNAX_ASSIGN_OR_RETURN(const std::vector<char> bytes, Bytes(attribute, type));
                for (auto at = bytes.begin(); at != bytes.end();) {
                    const auto end = std::find(at, bytes.end(), '\0');
                    proto.add_strings(std::string(at, end));
                    at = end == bytes.end() ? end : end + 1;
                }
                proto.set_type(onnx::AttributeProto::STRINGS);
                break;
            }
            case ORT_OP_ATTR_TENSOR: {
                OrtValue* raw = nullptr;
                FORNAX_ORT(api_, OpAttr_GetTensorAttributeAsOrtValue(attribute, &raw));
                const OwnedValue value(raw, api_.ort->ReleaseValue);
                FORNAX_ASSIGN_OR_RETURN(const TensorView view, ViewOf(api_, value.get()));
                if (!ElementOf(view.number)) {
                    Refuse(fmt::format("its attribute {} has elements of type {}", name,
                                       static_cast<int>(view.number)));
                    return OkStatus();
                }
                WriteTensor(view, true, *proto.mutable_t());
                proto.set_type(onnx::AttributeProto::TENSOR);
                break;
            }
            default:
                Refuse(fmt::format("its attribute {} is of a kind that onnxruntime does not give",
                                   name));
                return OkStatus();
        }
        *node.add_attribute() = std::move(proto);
        return OkStatus();
    }

    const Api& api_;
    const TrustScalar& trust_;
    Capture capture_;
    std::set<std::string> known_;
    std::string refused_;  // of the node at hand
};

}  // namespace

Result<Capture> CaptureNodes(const Api& api,
                             const OrtGraph* graph,
                             std::span<const OrtNode* const> nodes,
                             const TrustScalar& trust) {
    return Capturer(api, trust).Run(graph, nodes);
}

Result<NodeNames> NamesOf(const Api& api, const OrtNode* node) {
    NodeNames names;
    FORNAX_ASSIGN_OR_RETURN(std::vector<const OrtValueInfo*> read, InputsOf(api, node));
    FORNAX_ASSIGN_OR_RETURN(const std::vector<const OrtValueInfo*> implicit,
                            ImplicitInputsOf(api, node));
    read.insert(read.end(), implicit.begin(), implicit.end());
    for (const OrtValueInfo* value : read) {
        FORNAX_ASSIGN_OR_RETURN(std::string name, NameOf(api, value));
        names.reads.push_back(std::move(name));
    }
    FORNAX_ASSIGN_OR_RETURN(const std::vector<const OrtValueInfo*> written, OutputsOf(api, node));
    for (const OrtValueInfo* value : written) {
        FORNAX_ASSIGN_OR_RETURN(std::string name, NameOf(api, value));
        names.writes.push_back(std::move(name));
    }
    return names;
}

}  // namespace fornax::onnxruntime_plugin

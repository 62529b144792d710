// The model as a whole: file, versions, inputs, initializers, nodes in order, outputs.
#include "compiler/frontends/legacy_onnx/importer.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <exception>

#include <fmt/format.h>

#include "compiler/frontends/legacy_onnx/node_importer.h"
#include "compiler/frontends/legacy_onnx/tensor_proto.h"

namespace fornax::legacy_onnx {
namespace {

// Bounds the time that planning takes, which grows with the square; real networks have hundreds.
constexpr int kMaxNodes = 20'000;
constexpr int64_t kFirstOpset = 7;
constexpr int64_t kLastOpset = 21;

Error Invalid(std::string message) {
    return {ErrorCode::kInvalidArgument, std::move(message)};
}

class ModelImporter {
  public:
    ModelImporter(const onnx::ModelProto& model, std::string file, const ImportOptions& options)
        : model_(model),
          file_(std::move(file)),
          options_(options),
          graph_(model.graph().name().empty() ? "graph" : model.graph().name()) {}

    Result<legacy_graph::Graph> Run() {
        FORNAX_RETURN_IF_ERROR(ReadVersions());
        FORNAX_RETURN_IF_ERROR(ReadInitializers());
        FORNAX_RETURN_IF_ERROR(ReadInputs());
        for (int i = 0; i < model_.graph().node_size(); ++i) {
            FORNAX_RETURN_IF_ERROR(ReadNode(i));
        }
        FORNAX_RETURN_IF_ERROR(ReadOutputs());
        // What only served to compute shapes is of no more use.
        graph_.Compact();
        return std::move(graph_);
    }

  private:
    // The sentence that names the file, the subject within it, and the reason, which is a clause.
    Error Failed(const Error& error, const std::string& subject) const {
        const std::string reason = fmt::format("{}: {}", subject, error.message);
        return {error.code, fmt::format("{}: {}.", file_, legacy_graph::Printable(reason))};
    }

    Status ReadVersions() {
        for (const onnx::OperatorSetIdProto& import : model_.opset_import()) {
            if (import.domain().empty() || import.domain() == "ai.onnx") {
                opset_ = import.version();
            }
        }
        if (opset_ < kFirstOpset || opset_ > kLastOpset) {
            return Failed(Error{ErrorCode::kUnsupported, fmt::format("{} is not in {}..{}", opset_,
                                                                     kFirstOpset, kLastOpset)},
                          "the version of its operator set");
        }
        if (model_.graph().node_size() > kMaxNodes) {
            return Failed(
                Error{ErrorCode::kUnsupported, fmt::format("{} nodes exceed the limit of {}",
                                                           model_.graph().node_size(), kMaxNodes)},
                "the graph");
        }
        if (model_.graph().sparse_initializer_size() > 0) {
            return Failed(Error{ErrorCode::kUnsupported, "sparse initializers are not supported"},
                          "the graph");
        }
        return OkStatus();
    }

    Status Name(const std::string& name, legacy_graph::ValueId value) {
        if (name.empty() || !values_.emplace(name, value).second) {
            return Invalid("its name is empty or that of an earlier value");
        }
        return OkStatus();
    }

    Status ReadInitializer(const onnx::TensorProto& tensor) {
        FORNAX_ASSIGN_OR_RETURN(legacy_graph::Shape shape, ReadShape(tensor));
        if (tensor.data_type() == onnx::TensorProto::FLOAT) {
            FORNAX_ASSIGN_OR_RETURN(const std::vector<float> floats, ReadFloats(tensor));
            return Name(tensor.name(), graph_.AddFloats(tensor.name(), std::move(shape), floats));
        }
        FORNAX_ASSIGN_OR_RETURN(const std::vector<int64_t> integers, ReadIntegers(tensor));
        std::vector<uint8_t> bytes(integers.size() * sizeof(int64_t));
        std::copy_n(reinterpret_cast<const uint8_t*>(integers.data()), bytes.size(), bytes.data());
        return Name(
            tensor.name(),
            graph_.AddConstant(tensor.name(), {legacy_graph::DataType::kI64, std::move(shape)},
                               std::move(bytes)));
    }

    Status ReadInitializers() {
        for (const onnx::TensorProto& tensor : model_.graph().initializer()) {
            Status status = ReadInitializer(tensor);
            if (!status.ok()) {
                return Failed(status.error(), fmt::format("the initializer {}", tensor.name()));
            }
        }
        return OkStatus();
    }

    Result<int64_t> ReadDimension(const onnx::TensorShapeProto::Dimension& dim, bool first) const {
        if (dim.has_dim_value()) {
            return dim.dim_value();
        }
        const auto given = options_.dimensions.find(dim.dim_param());
        if (given != options_.dimensions.end()) {
            return given->second;
        }
        if (first) {
            return options_.batch;
        }
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("the size of its dimension {} is not known; give it one",
                                 dim.dim_param().empty() ? "without a name" : dim.dim_param())};
    }

    Result<legacy_graph::TensorType> ReadType(const onnx::TypeProto& type) const {
        if (!type.has_tensor_type() || !type.tensor_type().has_shape()) {
            return Error{ErrorCode::kUnsupported, "it is not a tensor with a shape"};
        }
        if (type.tensor_type().elem_type() != onnx::TensorProto::FLOAT) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("its type {} is not FLOAT",
                                     DataTypeName(type.tensor_type().elem_type()))};
        }
        std::vector<int64_t> dims;
        for (const auto& dim : type.tensor_type().shape().dim()) {
            FORNAX_ASSIGN_OR_RETURN(const int64_t size, ReadDimension(dim, dims.empty()));
            dims.push_back(size);
        }
        FORNAX_ASSIGN_OR_RETURN(legacy_graph::Shape shape, legacy_graph::Shape::Make(dims));
        return legacy_graph::TensorType{legacy_graph::DataType::kF32, std::move(shape)};
    }

    Status ReadInput(const onnx::ValueInfoProto& input) {
        FORNAX_ASSIGN_OR_RETURN(legacy_graph::TensorType type, ReadType(input.type()));
        return Name(input.name(), graph_.AddInput(input.name(), std::move(type)));
    }

    Status ReadInputs() {
        for (const onnx::ValueInfoProto& input : model_.graph().input()) {
            if (values_.contains(input.name())) {
                continue;  // an initializer that is listed as an input, too
            }
            Status status = ReadInput(input);
            if (!status.ok()) {
                return Failed(status.error(), fmt::format("the input {}", input.name()));
            }
        }
        return OkStatus();
    }

    // Checks the node against the ONNX library's own description of the operator.
    Status CheckSchema(const onnx::NodeProto& node) const {
        const onnx::OpSchema* schema =
            onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(opset_), node.domain());
        if (schema == nullptr) {
            return OkStatus();  // newer than the library; the operator table knows it
        }
        try {
            schema->Verify(node);
        } catch (const std::exception& error) {
            std::string reason = error.what();
            while (!reason.empty() && (reason.back() == '.' || std::isspace(reason.back()))) {
                reason.pop_back();
            }
            return Invalid(std::move(reason));
        }
        return OkStatus();
    }

    Status ImportNode(const onnx::NodeProto& proto, NodeImporter& node) const {
        const bool default_domain = proto.domain().empty() || proto.domain() == "ai.onnx";
        const OperatorEntry* entry = default_domain ? FindOperator(proto.op_type()) : nullptr;
        if (entry == nullptr) {
            return Error{ErrorCode::kUnsupported, "the operator is not supported"};
        }
        if (opset_ < entry->first_opset || opset_ > entry->last_opset) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("version {} of the operator is not in {}..{}", opset_,
                                     entry->first_opset, entry->last_opset)};
        }
        FORNAX_RETURN_IF_ERROR(CheckSchema(proto));
        FORNAX_RETURN_IF_ERROR(node.CheckInputs(entry->required_inputs));
        return entry->import(node);
    }

    Status ReadNode(int index) {
        const onnx::NodeProto& proto = model_.graph().node(index);
        std::string name = proto.name();
        if (name.empty()) {
            name = proto.output_size() > 0 ? proto.output(0) : fmt::format("#{}", index);
        }
        NodeImporter node(proto, name, opset_, graph_, values_);
        Status status = ImportNode(proto, node);
        if (!status.ok()) {
            return Failed(status.error(), fmt::format("the node {} ({})", name, proto.op_type()));
        }
        return OkStatus();
    }

    Status ReadOutput(const onnx::ValueInfoProto& output) {
        const auto found = values_.find(output.name());
        if (found == values_.end()) {
            return Invalid("it is computed by no node");
        }
        const legacy_graph::TensorType& type = graph_[found->second].type;
        if (type.type != legacy_graph::DataType::kF32) {
            return Error{ErrorCode::kUnsupported, fmt::format("it is {}", type.ToString())};
        }
        // The declared shape, where it is known, must be the computed one.
        if (output.type().has_tensor_type() && output.type().tensor_type().has_shape()) {
            const onnx::TensorShapeProto& declared = output.type().tensor_type().shape();
            bool same = static_cast<size_t>(declared.dim_size()) == type.shape.rank();
            for (int i = 0; same && i < declared.dim_size(); ++i) {
                same = !declared.dim(i).has_dim_value() ||
                       declared.dim(i).dim_value() == type.shape[static_cast<size_t>(i)];
            }
            if (!same) {
                return Invalid(
                    fmt::format("its shape is {}, not the declared one", type.shape.ToString()));
            }
        }
        graph_.AddOutput(output.name(), found->second);
        return OkStatus();
    }

    Status ReadOutputs() {
        if (model_.graph().output_size() == 0) {
            return Failed(Invalid("it has no output"), "the graph");
        }
        for (const onnx::ValueInfoProto& output : model_.graph().output()) {
            Status status = ReadOutput(output);
            if (!status.ok()) {
                return Failed(status.error(), fmt::format("the output {}", output.name()));
            }
        }
        return OkStatus();
    }

    const onnx::ModelProto& model_;
    const std::string file_;
    const ImportOptions& options_;
    int64_t opset_ = 0;
    legacy_graph::Graph graph_;
    ValuesByName values_;
};

}  // namespace

Result<legacy_graph::Graph> ImportModelBytes(const std::string& bytes,
                                             const std::string& name,
                                             const ImportOptions& options) {
    onnx::ModelProto model;
    // Every model has a graph and an operator set: most other files do not parse to that.
    if (!model.ParseFromString(bytes) || !model.has_graph() || model.opset_import_size() == 0) {
        return Invalid(fmt::format("{}: the file is not an ONNX model.", name));
    }
    return ModelImporter(model, name, options).Run();
}

}  // namespace fornax::legacy_onnx

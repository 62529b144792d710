// The model as a whole: file, versions, inputs, nodes, outputs.
#include "compiler/frontends/onnx/importer.h"

#include <algorithm>
#include <exception>
#include <filesystem>

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>

#include "base/file.h"
#include "compiler/frontends/onnx/graph_importer.h"
#include "compiler/frontends/onnx/node_errors.h"
#include "compiler/frontends/onnx/tensor_proto.h"

namespace fornax::onnx_frontend {
namespace {

Error NoModel(const std::string& name) {
    return {ErrorCode::kInvalidArgument,
            fmt::format("{}: it is not an ONNX model, or it is cut short.", name)};
}

class ModelImporter {
  public:
    // Takes the weights out of the model.
    ModelImporter(onnx::ModelProto& model,
                  std::string file,
                  std::string directory,
                  const ImportOptions& options,
                  const InitializerValues* values = nullptr)
        : options_(options),
          taken_(*model.mutable_graph()),
          graph_(model.graph().name().empty() ? "graph" : model.graph().name()),
          builder_(graph_),
          context_{model, options, std::move(file), std::move(directory), {}, FunctionsOf(model)},
          importer_(context_, builder_) {
        context_.values = values;
    }

    ImportedModel Run() {
        ReadVersions();
        const std::map<std::string, int64_t> missing = MissingOperators();
        std::vector<NodeProblem> problems;
        try {
            ImportGraph();
        } catch (const NodeErrors& errors) {
            if (errors.code() == ErrorCode::kUnsupported) {
                problems = errors.problems();
            } else if (missing.empty()) {
                throw;
            }
        } catch (const graph::BuildError&) {
            if (missing.empty()) {
                throw;
            }
        }
        if (!missing.empty() || !problems.empty()) {
            FailUnsupported(TextOf(missing, problems));
        }
        for (const onnx::ValueInfoProto& output : context_.model.graph().output()) {
            WriteOutput(output.name());
        }
        // What only served to compute shapes is of no more use.
        graph_.Compact();
        CheckHost();
        return {std::move(graph_), {fixed_.begin(), fixed_.end()}, std::move(output_lengths_), {}};
    }

    NodeCheck Check(const NodeFilter& filter) {
        ReadVersions();
        const onnx::GraphProto& graph = context_.model.graph();
        importer_.ImportInitializers(graph, &taken_);
        for (const onnx::ValueInfoProto& input : graph.input()) {
            if (importer_.Lookup(input.name()) == nullptr) {
                if (std::optional<Item> item = TryInput(input.name(), input.type())) {
                    importer_.Name(input.name(), *std::move(item));
                }
            }
        }
        return importer_.CheckModelNodes(graph.node(), filter, ReplacementByType());
    }

  private:
    void ImportGraph() {
        builder_.SetInputValue([this](graph::ValueId id) { return InputValue(id); });
        const onnx::GraphProto& graph = context_.model.graph();
        importer_.ImportInitializers(graph, &taken_);
        for (const onnx::ValueInfoProto& input : graph.input()) {
            if (importer_.Lookup(input.name()) == nullptr) {
                importer_.Name(input.name(), ReadInput(input.name(), input.type()));
            }
        }
        importer_.ImportNodes(graph.node(), ReplacementByType());
    }

    // An input in place of a value, of the type that the model says it has.
    GraphImporter::Replacement ReplacementByType() {
        std::map<std::string, const onnx::TypeProto*> types;
        for (const onnx::ValueInfoProto& value : context_.model.graph().value_info()) {
            types.emplace(value.name(), &value.type());
        }
        return [this, types = std::move(types)](const std::string& name) {
            const auto type = types.find(name);
            return type == types.end() ? std::nullopt : TryInput(name, *type->second);
        };
    }

    // An input, or nothing if there is none of this type.
    std::optional<Item> TryInput(const std::string& name, const onnx::TypeProto& type) {
        try {
            return ReadInput(name, type);
        } catch (const graph::BuildError&) {
            return std::nullopt;
        }
    }

    void ReadVersions() {
        for (const onnx::OperatorSetIdProto& import : context_.model.opset_import()) {
            context_.versions[NormalDomain(import.domain())] = import.version();
        }
        const auto version = context_.versions.find("");
        if (version != context_.versions.end() &&
            (version->second < kFirstOpset || version->second > kLastOpset)) {
            FailUnsupported(fmt::format("the version of its operator set, {}, is not in {}..{}",
                                        version->second, kFirstOpset, kLastOpset));
        }
    }

    void CountMissing(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                      std::map<std::string, int64_t>& missing,
                      int depth) {
        if (depth > 64) {
            return;
        }
        for (const onnx::NodeProto& node : nodes) {
            const std::string domain = NormalDomain(node.domain());
            if (!context_.functions.contains(FunctionKey(domain, node.op_type())) &&
                FindOperator(domain, node.op_type()) == nullptr) {
                ++missing[OperatorName(node)];
            }
            for (const onnx::AttributeProto& attribute : node.attribute()) {
                if (attribute.has_g()) {
                    CountMissing(attribute.g().node(), missing, depth + 1);
                }
            }
        }
    }

    // How many nodes use each operator that there is not, wherever they are.
    std::map<std::string, int64_t> MissingOperators() {
        std::map<std::string, int64_t> missing;
        CountMissing(context_.model.graph().node(), missing, 0);
        for (const auto& [key, function] : context_.functions) {
            CountMissing(function->node(), missing, 0);
        }
        return missing;
    }

    std::optional<Tensor> InputValue(graph::ValueId id) {
        const std::string& name = graph_[id].name;
        const auto given = options_.input_values.find(name);
        if (given == options_.input_values.end()) {
            return std::nullopt;
        }
        // The value has to be of the input's type, and its dimensions are now fixed, too.
        const graph::TensorType type = graph_.TypeOf(id);
        const Tensor& value = given->second;
        if (value.element != type.element || value.dims.size() != type.shape.rank()) {
            return std::nullopt;
        }
        for (size_t i = 0; i < value.dims.size(); ++i) {
            if (builder_.sizes().Fix(type.shape[i]) != value.dims[i]) {
                return std::nullopt;
            }
        }
        fixed_.insert(name);
        return value;
    }

    Expr ReadDimension(const std::string& input,
                       size_t axis,
                       const onnx::TensorShapeProto::Dimension* dim,
                       std::optional<int64_t> expected) {
        // Some exporters write -1 or "?" for a size that may change.
        if (dim != nullptr && dim->has_dim_value() && dim->dim_value() != -1) {
            const int64_t size = dim->dim_value();
            if (size < 0 || size > graph::kMaxElements) {
                FailInvalid(fmt::format("the input {} has a dimension of {}", input, size));
            }
            if (expected.value_or(size) != size) {
                FailInvalid(fmt::format("dimension {} of the input {} is {}, not {}", axis, input,
                                        size, *expected));
            }
            return size;
        }
        std::string name = dim == nullptr ? "" : dim->dim_param();
        int64_t hint = expected.value_or(options_.default_dim);
        const auto given = options_.dims.find(name);
        if (!expected.has_value() && given != options_.dims.end()) {
            hint = given->second;
        }
        if (name.empty() || name == "?") {
            name = fmt::format("{}.{}", input, axis);
        }
        if (hint < 0 || hint > INT32_MAX) {
            FailInvalid(fmt::format("dimension {} of the input {} is to be {}", axis, input, hint));
        }
        return builder_.sizes().Declare(name, hint);
    }

    // Items of a sequence may have different shapes: dimensions of one name are not one symbol.
    Item ReadInput(const std::string& name, const onnx::TypeProto& type, bool is_item = false) {
        const auto length = options_.sequence_lengths.find(name);
        if (type.has_optional_type()) {
            if (length != options_.sequence_lengths.end() && length->second < 0) {
                return {};
            }
            return ReadInput(name, type.optional_type().elem_type(), is_item);
        }
        if (type.has_sequence_type()) {
            if (length == options_.sequence_lengths.end() || length->second < 0) {
                FailUnsupported(fmt::format("the input {} is a sequence of unknown length", name));
            }
            std::vector<Item> items;
            for (int64_t i = 0; i < std::min<int64_t>(length->second, 1 << 16); ++i) {
                items.push_back(ReadInput(fmt::format("{}.{}", name, i),
                                          type.sequence_type().elem_type(), true));
            }
            return Item(std::move(items));
        }
        if (!type.has_tensor_type()) {
            FailUnsupported(fmt::format("the input {} is not a tensor or sequence", name));
        }
        const auto& tensor = type.tensor_type();
        const auto given = options_.input_shapes.find(name);
        const bool expected = given != options_.input_shapes.end();
        if (!tensor.has_shape() && !expected) {
            FailUnsupported(fmt::format("the input {} has no shape; give it one", name));
        }
        const size_t rank = tensor.has_shape() ? static_cast<size_t>(tensor.shape().dim_size())
                                               : given->second.size();
        if (rank > graph::kMaxRank || (expected && given->second.size() != rank)) {
            FailInvalid(fmt::format("the input {} has {} dimensions, not {}", name, rank,
                                    expected ? given->second.size() : graph::kMaxRank));
        }
        Shape shape;
        for (size_t i = 0; i < rank; ++i) {
            const auto* dim =
                tensor.has_shape() ? &tensor.shape().dim(static_cast<int>(i)) : nullptr;
            shape.mutable_dims().push_back(ReadDimension(
                name, i, is_item && dim != nullptr && !dim->has_dim_value() ? nullptr : dim,
                expected ? std::optional(given->second[i]) : std::nullopt));
        }
        if (shape.Volume().Bounds(builder_.sizes().ranges()).low > graph::kMaxElements) {
            FailUnsupported(
                fmt::format("the input {} has more than {} elements", name, graph::kMaxElements));
        }
        return builder_.Input(name, {ElementTypeOf(tensor.elem_type()), std::move(shape)});
    }

    void AddOutput(const std::string& name, const Item& item) {
        switch (item.kind) {
            case Item::Kind::kNothing:
                output_lengths_[name] = -2;
                break;
            case Item::Kind::kTensor:
                output_lengths_[name] = -1;
                graph_.AddOutput(name, item.tensor.id());
                break;
            case Item::Kind::kSequence:
                output_lengths_[name] = static_cast<int64_t>(item.sequence->size());
                for (size_t i = 0; i < item.sequence->size(); ++i) {
                    AddOutput(fmt::format("{}.{}", name, i), (*item.sequence)[i]);
                }
                break;
        }
    }

    void WriteOutput(const std::string& name) {
        const Item* item = importer_.Lookup(name);
        if (item == nullptr) {
            FailInvalid(fmt::format("its output {} is not the name of a value", name));
        }
        AddOutput(name, *item);
    }

    void CheckHost() {
        if (!options_.strict) {
            return;
        }
        std::vector<std::string> calls;
        for (const graph::Node& node : graph_.nodes()) {
            if (const auto* call = std::get_if<graph::op::HostCall>(&node.operation)) {
                calls.push_back(fmt::format("{} ({})", node.name, call->name));
            }
        }
        if (calls.size() == 1) {
            FailUnsupported(fmt::format("the node {} would run on the host", calls[0]));
        }
        if (!calls.empty()) {
            FailUnsupported(fmt::format("{} nodes would run on the host: {}", calls.size(),
                                        fmt::join(calls, ", ")));
        }
    }

    const ImportOptions& options_;
    onnx::GraphProto& taken_;
    graph::Graph graph_;
    Builder builder_;
    ModelContext context_;
    GraphImporter importer_;
    std::set<std::string> fixed_;
    std::map<std::string, int64_t> output_lengths_;
};

// The files that tensors anywhere in the message have their data in.
void AddExternalFiles(const google::protobuf::Message& message, std::set<std::string>& files) {
    if (const auto* tensor = dynamic_cast<const onnx::TensorProto*>(&message)) {
        for (const onnx::StringStringEntryProto& entry : tensor->external_data()) {
            if (entry.key() == "location") {
                files.insert(entry.value());
            }
        }
        return;
    }
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    std::vector<const google::protobuf::FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const google::protobuf::FieldDescriptor* field : fields) {
        if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
            continue;
        }
        if (!field->is_repeated()) {
            AddExternalFiles(reflection.GetMessage(message, field), files);
            continue;
        }
        for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
            AddExternalFiles(reflection.GetRepeatedMessage(message, field, i), files);
        }
    }
}

Result<ImportedModel> Import(google::protobuf::io::ZeroCopyInputStream& stream,
                             const std::string& name,
                             const std::string& directory,
                             const ImportOptions& options) {
    onnx::ModelProto model;
    google::protobuf::io::CodedInputStream coded(&stream);
    if (!model.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage() ||
        !model.has_graph()) {
        return NoModel(name);
    }
    std::set<std::string> external_files;
    AddExternalFiles(model, external_files);
    return graph::CatchBuildErrors(name, [&] {
        ImportedModel imported = ModelImporter(model, name, directory, options).Run();
        imported.external_files = std::move(external_files);
        return imported;
    });
}

}  // namespace

Result<ImportedModel> ImportModelMessage(onnx::ModelProto& model,
                                         const std::string& name,
                                         const InitializerValues& values,
                                         const ImportOptions& options) {
    return graph::CatchBuildErrors(
        name, [&] { return ModelImporter(model, name, "", options, &values).Run(); });
}

Result<NodeCheck> CheckNodes(onnx::ModelProto& model,
                             const InitializerValues& values,
                             const ImportOptions& options,
                             const NodeFilter& filter) {
    const std::string name = "model";
    return graph::CatchBuildErrors(
        name, [&] { return ModelImporter(model, name, "", options, &values).Check(filter); });
}

Result<ImportedModel> ImportModel(const std::string& bytes,
                                  const std::string& name,
                                  const std::string& directory,
                                  const ImportOptions& options) {
    if (bytes.size() > INT32_MAX) {
        return NoModel(name);
    }
    google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
    return Import(stream, name, directory, options);
}

Result<ImportedModel> ImportModelFile(const std::string& path, const ImportOptions& options) {
    FORNAX_ASSIGN_OR_RETURN(const OpenFile file, OpenRegular(path));
    if (file.size_bytes > INT32_MAX) {
        return NoModel(path);
    }
    constexpr int kPartBytes = 256 << 10;
    google::protobuf::io::FileInputStream stream(file.fd.get(), kPartBytes);
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    return Import(stream, path, parent.empty() ? "." : parent.string(), options);
}

}  // namespace fornax::onnx_frontend

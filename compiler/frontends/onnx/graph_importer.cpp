// The nodes of one graph in order: lookup of names, functions, subgraphs.
#include "compiler/frontends/onnx/graph_importer.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "compiler/frontends/onnx/node_errors.h"
#include "compiler/frontends/onnx/tensor_proto.h"

namespace fornax::onnx_frontend {
namespace {

// Bounds what a small file can grow to through functions and unrolled loops.
constexpr size_t kMaxImportedNodes = 200'000;
// The greatest nesting of functions within functions and of subgraphs within subgraphs.
constexpr int64_t kMaxDepth = 64;

class MissingOperator : public graph::BuildError {
  public:
    using BuildError::BuildError;
};

// How many nodes these are with the bodies of composites in their places.
size_t PrimitivesOf(std::span<const graph::Node> nodes) {
    size_t count = 0;
    for (const graph::Node& node : nodes) {
        count += graph::Is<graph::op::Composite>(node.operation)
                     ? PrimitivesOf(node.bodies[0]->nodes())
                     : 1;
    }
    return count;
}

// Why the filter does not take one of these, bodies of composites included; "" if it does.
std::string FirstReason(const graph::Graph& graph,
                        std::span<const graph::Node> nodes,
                        const NodeFilter& filter) {
    for (const graph::Node& node : nodes) {
        std::string reason = filter(graph, node);
        if (reason.empty() && graph::Is<graph::op::Composite>(node.operation)) {
            reason = FirstReason(*node.bodies[0], node.bodies[0]->nodes(), filter);
        }
        if (!reason.empty()) {
            return reason;
        }
    }
    return "";
}

class DepthScope {
  public:
    explicit DepthScope(ModelContext& context) : context_(context) {
        if (++context_.depth > kMaxDepth) {
            --context_.depth;
            throw LimitError(fmt::format(
                "functions and subgraphs are nested deeper than the limit of {}", kMaxDepth));
        }
    }
    ~DepthScope() { --context_.depth; }
    DepthScope(const DepthScope&) = delete;
    DepthScope& operator=(const DepthScope&) = delete;

  private:
    ModelContext& context_;
};

// The attributes' defaults of a function are newer than the distribution's classes: field 11.
void ReadAttributeDefaults(const onnx::FunctionProto& function,
                           std::vector<onnx::AttributeProto>& defaults) {
    const auto& unknown = function.GetReflection()->GetUnknownFields(function);
    for (int i = 0; i < unknown.field_count(); ++i) {
        const auto& field = unknown.field(i);
        onnx::AttributeProto attribute;
        if (field.number() == 11 &&
            field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED &&
            attribute.ParseFromString(field.length_delimited())) {
            defaults.push_back(std::move(attribute));
        }
    }
}

void CollectOuterNames(const onnx::GraphProto& graph, std::set<std::string>& names) {
    std::set<std::string> own;
    for (const auto& input : graph.input()) {
        own.insert(input.name());
    }
    for (const auto& tensor : graph.initializer()) {
        own.insert(tensor.name());
    }
    for (const auto& tensor : graph.sparse_initializer()) {
        own.insert(tensor.values().name());
    }
    for (const onnx::NodeProto& node : graph.node()) {
        for (const std::string& input : node.input()) {
            if (!input.empty() && !own.contains(input)) {
                names.insert(input);
            }
        }
        for (const onnx::AttributeProto& attribute : node.attribute()) {
            if (attribute.has_g()) {
                std::set<std::string> inner;
                CollectOuterNames(attribute.g(), inner);
                for (const std::string& name : inner) {
                    if (!own.contains(name)) {
                        names.insert(name);
                    }
                }
            }
        }
        own.insert(node.output().begin(), node.output().end());
    }
    for (const auto& output : graph.output()) {
        if (!own.contains(output.name())) {
            names.insert(output.name());
        }
    }
}

std::set<std::string> NamesReadBy(const onnx::NodeProto& node) {
    std::set<std::string> names(node.input().begin(), node.input().end());
    for (const onnx::AttributeProto& attribute : node.attribute()) {
        if (attribute.has_g()) {
            CollectOuterNames(attribute.g(), names);
        }
    }
    return names;
}

bool Intersects(const std::set<std::string>& a, const std::set<std::string>& b) {
    return std::ranges::any_of(a, [&](const std::string& name) { return b.contains(name); });
}

}  // namespace

std::string NormalDomain(const std::string& domain) {
    return domain == "ai.onnx" ? "" : domain;
}

std::string FunctionKey(const std::string& domain, const std::string& name) {
    return NormalDomain(domain) + ":" + name;
}

std::map<std::string, const onnx::FunctionProto*> FunctionsOf(const onnx::ModelProto& model) {
    std::map<std::string, const onnx::FunctionProto*> functions;
    for (const onnx::FunctionProto& function : model.functions()) {
        functions.emplace(FunctionKey(function.domain(), function.name()), &function);
    }
    return functions;
}

std::set<std::string> OuterNames(const onnx::GraphProto& graph) {
    std::set<std::string> names;
    CollectOuterNames(graph, names);
    return names;
}

const onnx::AttributeProto* GraphImporter::FunctionAttribute(const std::string& name) const {
    if (attributes_ != nullptr) {
        const auto found = attributes_->find(name);
        return found == attributes_->end() ? nullptr : found->second;
    }
    return outer_ == nullptr ? nullptr : outer_->FunctionAttribute(name);
}

void GraphImporter::Name(const std::string& name, Item item) {
    if (name.empty()) {
        return;
    }
    if (!items_.emplace(name, std::move(item)).second) {
        FailInvalid(fmt::format("the name {} is that of an earlier value", name));
    }
}

const Item* GraphImporter::Lookup(const std::string& name) const {
    const auto found = items_.find(name);
    if (found != items_.end()) {
        return &found->second;
    }
    return outer_ == nullptr ? nullptr : outer_->Lookup(name);
}

void GraphImporter::ImportInitializers(const onnx::GraphProto& graph, onnx::GraphProto* taken) {
    const auto name_error = [](const std::string& name, const graph::BuildError& error) {
        throw graph::BuildError(error.code(),
                                fmt::format("the initializer {}: {}", name, error.what()));
    };
    for (int i = 0; i < graph.initializer_size(); ++i) {
        const onnx::TensorProto& tensor = graph.initializer(i);
        try {
            if (context_.values != nullptr) {
                const auto value = context_.values->find(tensor.name());
                if (value != context_.values->end()) {
                    Name(tensor.name(), builder_.Constant(value->second, tensor.name()));
                    continue;
                }
            }
            graph::Tensor constant =
                taken != nullptr ? TakeTensor(*taken->mutable_initializer(i), context_.directory)
                                 : ReadTensor(tensor, context_.directory);
            Name(tensor.name(), builder_.Constant(std::move(constant), tensor.name()));
        } catch (const graph::BuildError& error) {
            name_error(tensor.name(), error);
        }
    }
    for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer()) {
        const std::string& name = tensor.values().name();
        try {
            Name(name, builder_.Constant(ReadSparseTensor(tensor, context_.directory), name));
        } catch (const graph::BuildError& error) {
            name_error(name, error);
        }
    }
}

void GraphImporter::ImportNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                                const Replacement& replacement) {
    // Values that nodes which failed would have given: those that are missing, and those that have
    // a replacement or are computed from one.
    std::set<std::string> lost, assumed;
    std::vector<NodeProblem> problems;
    const auto lose = [&](const onnx::NodeProto& node) {
        for (const std::string& name : node.output()) {
            std::optional<Item> item = replacement ? replacement(name) : std::nullopt;
            if (item.has_value() && !items_.contains(name)) {
                Name(name, *std::move(item));
                assumed.insert(name);
            } else if (!name.empty()) {
                lost.insert(name);
            }
        }
    };
    for (const onnx::NodeProto& node : nodes) {
        std::set<std::string> read;
        if (!problems.empty()) {
            read = NamesReadBy(node);
        }
        if (Intersects(read, lost)) {
            lose(node);
            continue;
        }
        const bool assumes = Intersects(read, assumed);
        try {
            ImportNamedNode(node);
            if (assumes) {
                assumed.insert(node.output().begin(), node.output().end());
            }
        } catch (const NodeErrors& errors) {
            // What an assumption leads to is no error of the model.
            if (errors.code() != ErrorCode::kUnsupported && !assumes) {
                throw;
            }
            for (const NodeProblem& problem : errors.problems()) {
                if (errors.code() == ErrorCode::kUnsupported &&
                    (!assumes || problem.kind != NodeProblem::Kind::kDependsOnData)) {
                    problems.push_back(problem);
                }
            }
            lose(node);
        }
    }
    if (!problems.empty()) {
        throw NodeErrors(ErrorCode::kUnsupported, std::move(problems));
    }
}

NodeCheck GraphImporter::CheckModelNodes(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
    const NodeFilter& filter,
    const Replacement& replacement) {
    NodeCheck check;
    for (const onnx::NodeProto& node : nodes) {
        std::string reason;
        const size_t first = builder_.graph().nodes().size();
        try {
            ImportNode(node);
            reason = FirstReason(builder_.graph(), builder_.graph().nodes().subspan(first), filter);
        } catch (const graph::BuildError& error) {
            reason = error.what();
        }
        for (const std::string& name : node.output()) {
            if (reason.empty()) {
                const Item* item = Lookup(name);
                if (item != nullptr && item->kind == Item::Kind::kTensor) {
                    check.ranks[name] = item->tensor.shape().rank();
                }
                continue;
            }
            items_.erase(name);
            if (name.empty()) {
                continue;
            }
            if (std::optional<Item> item = replacement(name)) {
                Name(name, *std::move(item));
            }
        }
        check.reasons.push_back(std::move(reason));
    }
    return check;
}

void GraphImporter::ImportNamedNode(const onnx::NodeProto& node) {
    const auto fail = [&](const graph::BuildError& error, NodeProblem::Kind kind) {
        throw NodeErrors(error.code(), {{kind, &node, error.what()}});
    };
    try {
        ImportNode(node);
    } catch (const NodeErrors&) {
        throw;
    } catch (const LimitError&) {
        throw;
    } catch (const MissingOperator& error) {
        fail(error, NodeProblem::Kind::kMissingOperator);
    } catch (const graph::DependsOnData& error) {
        fail(error, NodeProblem::Kind::kDependsOnData);
    } catch (const graph::BuildError& error) {
        fail(error, NodeProblem::Kind::kOther);
    }
}

void GraphImporter::ImportNode(const onnx::NodeProto& node) {
    CountNodes(1);
    const auto function = context_.functions.find(FunctionKey(node.domain(), node.op_type()));
    if (function != context_.functions.end()) {
        return ImportFunction(node, *function->second);
    }
    const std::string domain = NormalDomain(node.domain());
    const OperatorEntry* entry = FindOperator(domain, node.op_type());
    if (entry == nullptr) {
        throw MissingOperator(ErrorCode::kUnsupported, "Fornax does not have this operator");
    }
    const auto version = context_.versions.find(domain);
    const int64_t number = version == context_.versions.end() ? 1 : version->second;
    if (number < entry->first_version) {
        FailUnsupported(
            fmt::format("it is of version {} of its operator set; {} is the first that "
                        "Fornax has of this operator",
                        number, entry->first_version));
    }
    std::vector<Item> inputs;
    for (const std::string& name : node.input()) {
        if (name.empty()) {
            inputs.emplace_back();
            continue;
        }
        const Item* item = Lookup(name);
        if (item == nullptr) {
            FailInvalid(fmt::format("its input {} is not the name of an earlier value", name));
        }
        inputs.push_back(*item);
    }
    builder_.SetName(node.name().empty() ? node.op_type() : node.name());
    Node context(*this, node, number, std::move(inputs));
    for (size_t i = 0; i < entry->required_inputs; ++i) {
        if (!context.Has(i)) {
            FailInvalid(fmt::format("it lacks input {} of the {} that it needs", i,
                                    entry->required_inputs));
        }
    }
    const size_t first = builder_.graph().nodes().size();
    const size_t before = context_.imported_nodes;
    entry->import(context);
    // Those of subgraphs that it inlined have been counted.
    const size_t counted = context_.imported_nodes - before;
    const size_t primitives = PrimitivesOf(builder_.graph().nodes().subspan(first));
    CountNodes(primitives - std::min(primitives, counted));
    for (int i = 0; i < node.output_size(); ++i) {
        Name(node.output(i), context.outputs()[static_cast<size_t>(i)]);
    }
}

// A small file may stand for many nodes: loops, functions that call functions.
void GraphImporter::CountNodes(size_t count) {
    context_.imported_nodes += count;
    if (context_.imported_nodes > kMaxImportedNodes) {
        throw LimitError(fmt::format(
            "the model has more than {} nodes, with those that functions and loops repeat",
            kMaxImportedNodes));
    }
}

void GraphImporter::ImportFunction(const onnx::NodeProto& node,
                                   const onnx::FunctionProto& function) {
    const DepthScope depth(context_);
    std::vector<onnx::AttributeProto> defaults;
    ReadAttributeDefaults(function, defaults);
    AttributeMap attributes;
    for (const onnx::AttributeProto& attribute : node.attribute()) {
        const onnx::AttributeProto* value = attribute.ref_attr_name().empty()
                                                ? &attribute
                                                : FunctionAttribute(attribute.ref_attr_name());
        if (value != nullptr) {
            attributes.emplace(attribute.name(), value);
        }
    }
    for (const onnx::AttributeProto& attribute : defaults) {
        attributes.emplace(attribute.name(), &attribute);
    }
    // A function brings the versions of the operator sets that its body is written for.
    std::map<std::string, int64_t> versions = context_.versions;
    for (const onnx::OperatorSetIdProto& import : function.opset_import()) {
        versions[NormalDomain(import.domain())] = import.version();
    }
    GraphImporter body(context_, builder_, nullptr, &attributes);
    for (int i = 0; i < function.input_size(); ++i) {
        const Item* item =
            i < node.input_size() && !node.input(i).empty() ? Lookup(node.input(i)) : nullptr;
        if (i < node.input_size() && !node.input(i).empty() && item == nullptr) {
            FailInvalid(
                fmt::format("its input {} is not the name of an earlier value", node.input(i)));
        }
        body.Name(function.input(i), item == nullptr ? Item() : *item);
    }
    std::swap(context_.versions, versions);
    struct Restore {
        ModelContext& context;
        std::map<std::string, int64_t>& versions;
        ~Restore() { std::swap(context.versions, versions); }
    } restore{context_, versions};
    body.ImportNodes(function.node());
    for (int i = 0; i < node.output_size() && i < function.output_size(); ++i) {
        const Item* item = body.Lookup(function.output(i));
        if (item == nullptr) {
            FailInvalid(fmt::format("its function does not compute {}", function.output(i)));
        }
        Name(node.output(i), *item);
    }
}

std::vector<Item> GraphImporter::Inline(const onnx::GraphProto& graph,
                                        const std::vector<Item>& inputs) {
    const DepthScope depth(context_);
    const std::string name = builder_.name();
    GraphImporter inner(context_, builder_, this);
    if (static_cast<size_t>(graph.input_size()) > inputs.size()) {
        FailInvalid(
            fmt::format("its subgraph has {} inputs, not {}", graph.input_size(), inputs.size()));
    }
    for (int i = 0; i < graph.input_size(); ++i) {
        inner.Name(graph.input(i).name(), inputs[static_cast<size_t>(i)]);
    }
    inner.ImportInitializers(graph);
    inner.ImportNodes(graph.node());
    std::vector<Item> outputs;
    for (const onnx::ValueInfoProto& output : graph.output()) {
        const Item* item = inner.Lookup(output.name());
        if (item == nullptr) {
            FailInvalid(fmt::format("its subgraph does not compute {}", output.name()));
        }
        outputs.push_back(*item);
    }
    builder_.SetName(name);
    return outputs;
}

GraphImporter::Captures GraphImporter::Capture(const std::set<std::string>& names) const {
    Captures captures;
    const std::function<void(const Item&)> add = [&](const Item& item) {
        if (item.kind == Item::Kind::kTensor &&
            item.tensor.builder().ConstantOf(item.tensor) == nullptr) {
            captures.operands.push_back(item.tensor);
        } else if (item.kind == Item::Kind::kSequence) {
            for (const Item& part : *item.sequence) {
                add(part);
            }
        }
    };
    for (const std::string& name : names) {
        const Item* item = Lookup(name);
        if (item != nullptr) {
            captures.entries.push_back({name, *item, captures.operands.size()});
            add(*item);
        }
    }
    return captures;
}

graph::Body GraphImporter::MakeBody(
    const std::string& name,
    const Vals& inputs,
    const Captures& captures,
    size_t varying,
    const std::function<Vals(GraphImporter& body, const Vals& inputs)>& function) {
    Vals operands = inputs;
    operands.insert(operands.end(), captures.operands.begin(), captures.operands.end());
    const auto build = [&](Builder& body, const Vals& values) {
        GraphImporter inner(context_, body, nullptr, attributes_);
        for (const Captures::Entry& entry : captures.entries) {
            size_t next = inputs.size() + entry.first;
            const std::function<Item(const Item&)> take = [&](const Item& item) -> Item {
                if (item.kind == Item::Kind::kTensor) {
                    const Tensor* constant = builder_.ConstantOf(item.tensor);
                    return constant == nullptr ? values[next++] : body.Constant(*constant);
                }
                if (item.kind == Item::Kind::kNothing) {
                    return {};
                }
                std::vector<Item> parts;
                for (const Item& part : *item.sequence) {
                    parts.push_back(take(part));
                }
                return Item(std::move(parts));
            };
            inner.Name(entry.name, take(entry.item));
        }
        return function(inner,
                        Vals(values.begin(), values.begin() + static_cast<int64_t>(inputs.size())));
    };
    // A body takes over what is known of all sizes, which would cost more than its nodes where data
    // tell many thousands of them.
    CountNodes(builder_.sizes().hints().size());
    return builder_.MakeBody(name, operands, build, varying);
}

}  // namespace fornax::onnx_frontend

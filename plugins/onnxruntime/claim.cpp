#include "plugins/onnxruntime/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/frontends/onnx/model_message.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/graph/schedule/realize.h"
#include "compiler/graph/schedule/recurrence.h"
#include "plugins/onnxruntime/capture.h"
#include "plugins/onnxruntime/context.h"
#include "plugins/onnxruntime/grouping.h"

namespace fornax::onnxruntime_plugin {
namespace {

// What open sizes are taken to be while nodes are checked. Networks of pictures fail with small
// ones, reshapes with some of the others.
constexpr int64_t kSizeHints[] = {64, 1};
// Groups are made again when one is not compiled by itself; the rest is left to others then.
constexpr int kMaxRounds = 16;

std::string Reject(const graph::Graph& graph, const graph::Node& node) {
    // Loops and conditions may still be lowered: HostNodes() tells.
    if (graph::Is<graph::op::If>(node.operation) || graph::Is<graph::op::Loop>(node.operation)) {
        return "";
    }
    graph::Classification classification = graph::Classify(graph, node);
    return classification.node_class == graph::NodeClass::kHost ? std::move(classification.reason)
                                                                : "";
}

bool HasControlFlow(const graph::Graph& graph) {
    return std::ranges::any_of(graph.nodes(), [](const graph::Node& node) {
        return graph::Is<graph::op::If>(node.operation) ||
               graph::Is<graph::op::Loop>(node.operation) ||
               (graph::Is<graph::op::Composite>(node.operation) && HasControlFlow(*node.bodies[0]));
    });
}

// The names of nodes of which a part would run on the host, and why.
Result<std::map<std::string, std::string>> HostNodes(graph::Graph graph) {
    const auto keep_none = [](const graph::Graph&, const graph::Node&) { return false; };
    FORNAX_ASSIGN_OR_RETURN(graph, graph::SpecializeSizes(std::move(graph), {}));
    FORNAX_ASSIGN_OR_RETURN(graph, graph::InlineComposites(graph, keep_none));
    FORNAX_ASSIGN_OR_RETURN(graph, graph::Simplify(graph));
    FORNAX_ASSIGN_OR_RETURN(graph, graph::LowerControlFlow(graph, graph::IsRecurrence));
    FORNAX_ASSIGN_OR_RETURN(graph, graph::InlineComposites(graph, keep_none));
    std::map<std::string, std::string> names;
    for (const graph::Node& node : graph.nodes()) {
        graph::Classification classification = graph::Classify(graph, node);
        if (classification.node_class == graph::NodeClass::kHost) {
            names.emplace(node.name, std::move(classification.reason));
        }
    }
    return names;
}

// Gives a node and those of its subgraphs one name.
void Rename(onnx::NodeProto& node, const std::string& name) {
    node.set_name(name);
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) {
            for (onnx::NodeProto& inner : *attribute.mutable_g()->mutable_node()) {
                Rename(inner, name);
            }
        }
    }
}

class Chooser {
  public:
    Chooser(const Api& api, const OrtGraph* graph) : api_(api), graph_(graph) {}

    Result<Claim> Run() {
        FORNAX_RETURN_IF_ERROR(Read());
        FORNAX_RETURN_IF_ERROR(CheckAll());
        std::vector<std::vector<size_t>> groups;
        std::set<std::vector<size_t>> verified;
        for (int round = 0;; ++round) {
            groups = GroupNodes(group_nodes_);
            bool changed = false;
            for (const std::vector<size_t>& group : groups) {
                if (verified.contains(group)) {
                    continue;
                }
                FORNAX_ASSIGN_OR_RETURN(const bool holds, Verify(group, round == kMaxRounds));
                changed |= !holds;
                if (holds) {
                    verified.insert(group);
                }
            }
            if (!changed) {
                break;
            }
        }
        return Finish(groups);
    }

  private:
    Status Read() {
        FORNAX_ASSIGN_OR_RETURN(nodes_, NodesOf(api_, graph_));
        size_t count = 0;
        FORNAX_ORT(api_, Graph_GetNumInputs(graph_, &count));
        std::vector<const OrtValueInfo*> inputs(count, nullptr);
        FORNAX_ORT(api_, Graph_GetInputs(graph_, inputs.data(), count));
        for (const OrtValueInfo* input : inputs) {
            FORNAX_ASSIGN_OR_RETURN(std::string name, NameOf(api_, input));
            scalars_.insert(std::move(name));
        }
        FORNAX_ORT(api_, Graph_GetNumOutputs(graph_, &count));
        std::vector<const OrtValueInfo*> outputs(count, nullptr);
        FORNAX_ORT(api_, Graph_GetOutputs(graph_, outputs.data(), count));
        for (const OrtValueInfo* output : outputs) {
            FORNAX_ASSIGN_OR_RETURN(std::string name, NameOf(api_, output));
            outputs_.insert(std::move(name));
        }
        std::map<std::string, size_t> producers;
        for (size_t i = 0; i < nodes_.size(); ++i) {
            FORNAX_ASSIGN_OR_RETURN(NodeNames names, NamesOf(api_, nodes_[i]));
            GroupNode node;
            for (const std::string& name : names.reads) {
                const auto producer = producers.find(name);
                if (producer != producers.end()) {
                    node.sources.push_back(producer->second);
                }
            }
            for (const std::string& name : names.writes) {
                if (!name.empty()) {
                    producers[name] = i;
                }
            }
            group_nodes_.push_back(std::move(node));
            names_.push_back(std::move(names));
        }
        reasons_.resize(nodes_.size());
        return OkStatus();
    }

    void Leave(size_t node, std::string reason) {
        group_nodes_[node].is_taken = false;
        if (reasons_[node].empty()) {
            reasons_[node] = std::move(reason);
        }
    }

    // The nodes one after the other, in the whole graph.
    Status CheckAll() {
        FORNAX_ASSIGN_OR_RETURN(const Capture capture,
                                CaptureNodes(api_, graph_, nodes_, [&](const std::string& name) {
                                    return scalars_.contains(name);
                                }));
        std::optional<onnx_frontend::NodeCheck> best;
        size_t least = 0;
        for (const int64_t hint : kSizeHints) {
            onnx_frontend::ImportOptions options;
            options.default_dim = hint;
            onnx::ModelProto model = capture.model;
            FORNAX_ASSIGN_OR_RETURN(
                onnx_frontend::NodeCheck check,
                onnx_frontend::CheckNodes(model, capture.weights, options, Reject));
            const auto left = static_cast<size_t>(std::ranges::count_if(
                check.reasons, [](const std::string& reason) { return !reason.empty(); }));
            if (!best || left < least) {
                best = std::move(check);
                least = left;
                hint_ = hint;
            }
            if (least == 0) {
                break;
            }
        }
        for (size_t i = 0; i < nodes_.size(); ++i) {
            reasons_[i] = capture.refused[i].empty() ? best->reasons[i] : capture.refused[i];
            group_nodes_[i].is_taken = reasons_[i].empty();
        }
        for (const auto& [name, rank] : best->ranks) {
            if (rank == 0) {
                scalars_.insert(name);
            }
        }
        return OkStatus();
    }

    // Whether a group compiles by itself. If not, leaves the nodes for which it does not.
    Result<bool> Verify(const std::vector<size_t>& group, bool is_last) {
        std::vector<const OrtNode*> nodes;
        for (const size_t node : group) {
            nodes.push_back(nodes_[node]);
        }
        FORNAX_ASSIGN_OR_RETURN(Capture capture,
                                CaptureNodes(api_, graph_, nodes, [&](const std::string& name) {
                                    return scalars_.contains(name);
                                }));
        onnx_frontend::ImportOptions options;
        options.default_dim = hint_;
        onnx::ModelProto model = capture.model;
        FORNAX_ASSIGN_OR_RETURN(const onnx_frontend::NodeCheck check,
                                onnx_frontend::CheckNodes(model, capture.weights, options, Reject));
        bool holds = true;
        for (size_t i = 0; i < group.size(); ++i) {
            if (!check.reasons[i].empty() || is_last) {
                Leave(group[i],
                      check.reasons[i].empty() ? "its partition was given up" : check.reasons[i]);
                holds = false;
            }
        }
        if (!holds) {
            return false;
        }
        return VerifyWhole(group, capture, options);
    }

    // The same of the group as one graph.
    Result<bool> VerifyWhole(const std::vector<size_t>& group,
                             Capture& capture,
                             const onnx_frontend::ImportOptions& options) {
        std::map<std::string, size_t> by_name;
        onnx::GraphProto& proto = *capture.model.mutable_graph();
        for (int i = 0; i < proto.node_size(); ++i) {
            const std::string name = fmt::format("node {}", i);
            Rename(*proto.mutable_node(i), name);
            by_name[name] = group[static_cast<size_t>(i)];
        }
        for (const size_t node : group) {
            for (const std::string& name : names_[node].writes) {
                if (!name.empty()) {
                    proto.add_output()->set_name(name);
                }
            }
        }
        const auto leave_all = [&](const std::string& reason) {
            for (const size_t node : group) {
                Leave(node, reason);
            }
            return false;
        };
        Result<onnx_frontend::ImportedModel> imported =
            onnx_frontend::ImportModelMessage(capture.model, "partition", capture.weights, options);
        if (!imported.ok()) {
            return leave_all(imported.error().message);
        }
        if (!HasControlFlow(imported->graph)) {
            return true;
        }
        Result<std::map<std::string, std::string>> host = HostNodes(std::move(imported->graph));
        if (!host.ok()) {
            return leave_all(host.error().message);
        }
        bool holds = true;
        for (const auto& [name, reason] : *host) {
            const auto node = by_name.find(name);
            if (node == by_name.end()) {
                return leave_all(reason);
            }
            Leave(node->second, reason);
            holds = false;
        }
        return holds;
    }

    // Whether all that the group computes are integers, as shapes are: beside nodes of others it is
    // not worth a submission.
    Result<bool> IsShapeWork(const std::vector<size_t>& group) const {
        if (group.size() == nodes_.size()) {
            return false;
        }
        for (const size_t node : group) {
            FORNAX_ASSIGN_OR_RETURN(const std::vector<const OrtValueInfo*> written,
                                    OutputsOf(api_, nodes_[node]));
            for (const OrtValueInfo* value : written) {
                FORNAX_ASSIGN_OR_RETURN(const std::string name, NameOf(api_, value));
                if (name.empty()) {
                    continue;
                }
                FORNAX_ASSIGN_OR_RETURN(const ValueType type, TypeOf(api_, value));
                if (type.number != ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 &&
                    type.number != ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 &&
                    type.number != ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL) {
                    return false;
                }
            }
        }
        return true;
    }

    Result<bool> IsStatic(const std::vector<size_t>& group) const {
        std::set<std::string> written;
        for (const size_t node : group) {
            written.insert(names_[node].writes.begin(), names_[node].writes.end());
        }
        for (const size_t node : group) {
            FORNAX_ASSIGN_OR_RETURN(std::vector<const OrtValueInfo*> read,
                                    InputsOf(api_, nodes_[node]));
            FORNAX_ASSIGN_OR_RETURN(const std::vector<const OrtValueInfo*> implicit,
                                    ImplicitInputsOf(api_, nodes_[node]));
            read.insert(read.end(), implicit.begin(), implicit.end());
            for (const OrtValueInfo* value : read) {
                FORNAX_ASSIGN_OR_RETURN(const std::string name, NameOf(api_, value));
                if (name.empty() || written.contains(name)) {
                    continue;
                }
                FORNAX_ASSIGN_OR_RETURN(const ValueType type, TypeOf(api_, value));
                if (!type.is_static()) {
                    return false;
                }
            }
        }
        return true;
    }

    Result<Claim> Finish(const std::vector<std::vector<size_t>>& groups) {
        Claim claim;
        claim.node_count = nodes_.size();
        for (const std::vector<size_t>& group : groups) {
            FORNAX_ASSIGN_OR_RETURN(const bool is_shape_work, IsShapeWork(group));
            if (is_shape_work) {
                for (const size_t node : group) {
                    Leave(node, "its partition computes shapes only");
                }
                continue;
            }
            Claim::Group& made = claim.groups.emplace_back();
            for (const size_t node : group) {
                made.nodes.push_back(nodes_[node]);
            }
            FORNAX_ASSIGN_OR_RETURN(made.is_static, IsStatic(group));
        }
        for (size_t i = 0; i < nodes_.size(); ++i) {
            if (!reasons_[i].empty()) {
                const char* name = nullptr;
                FORNAX_ORT(api_, Node_GetName(nodes_[i], &name));
                FORNAX_ASSIGN_OR_RETURN(const std::string type, OperatorOf(api_, nodes_[i]));
                claim.left.push_back({fmt::format("{} ({})", name, type), reasons_[i]});
            }
        }
        return claim;
    }

    const Api& api_;
    const OrtGraph* graph_;
    std::vector<const OrtNode*> nodes_;
    std::vector<NodeNames> names_;
    std::vector<GroupNode> group_nodes_;
    std::vector<std::string> reasons_;  // by node, of those that are left
    std::set<std::string> outputs_;
    std::set<std::string> scalars_;  // values whose rank of 0 is sure
    int64_t hint_ = kSizeHints[0];
};

}  // namespace

Result<Claim> ChooseNodes(const Api& api, const OrtGraph* graph) {
    FORNAX_ASSIGN_OR_RETURN(const std::vector<const OrtNode*> nodes, NodesOf(api, graph));
    Claim contexts;
    contexts.node_count = nodes.size();
    for (const OrtNode* node : nodes) {
        FORNAX_ASSIGN_OR_RETURN(const bool is_context, IsContextNode(api, node));
        if (is_context) {
            // Its constants are inputs that it reads.
            contexts.groups.push_back({{node}, false});
        }
    }
    if (!contexts.groups.empty()) {
        return contexts;
    }
    return Chooser(api, graph).Run();
}

Result<bool> IsContextNode(const Api& api, const OrtNode* node) {
    FORNAX_ASSIGN_OR_RETURN(const std::string type, OperatorOf(api, node));
    FORNAX_ASSIGN_OR_RETURN(const std::string domain, DomainOf(api, node));
    if (type != kContextOperator || domain != kContextDomain) {
        return false;
    }
    FORNAX_ASSIGN_OR_RETURN(const std::string source, TextAttribute(api, node, "source"));
    return source == kProviderName;
}

}  // namespace fornax::onnxruntime_plugin

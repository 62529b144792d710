// Looks at what the choice was, not at how it was made: readers tell why a reduction stands alone.
#include "compiler/graph/schedule/boundaries.h"

#include <set>

#include <fmt/format.h>

#include "compiler/graph/ir/text.h"
#include "compiler/graph/schedule/readers.h"

namespace fornax::graph {
namespace {

class Explainer {
  public:
    Explainer(const Graph& graph, const Realization& realization)
        : graph_(graph), realization_(realization), readers_(graph, realization.realized) {
        for (const Output& output : graph.outputs()) {
            outputs_.insert(StorageOf(graph, output.value));
        }
    }

    std::vector<Boundary> Run() const {
        std::vector<Boundary> boundaries;
        for (const Node& node : graph_.nodes()) {
            for (const ValueId result : node.results) {
                if (realization_.realized[result.value()] &&
                    Classify(graph_, node, realization_.serial).node_class != NodeClass::kState) {
                    boundaries.push_back(Explain(node, result));
                }
            }
        }
        return boundaries;
    }

  private:
    Boundary Explain(const Node& node, ValueId value) const {
        Boundary boundary;
        boundary.node = node.name;
        boundary.operation = Name(node.operation);
        if (const auto* map = std::get_if<op::Map>(&node.operation)) {
            boundary.operation += fmt::format(" {}", Name(map->function));
        }
        boundary.type = graph_.TypeOf(value);
        boundary.nodes = NodesOf(node);
        const std::vector<size_t> readers = NodesThatRead(value);
        for (const size_t reader : readers) {
            boundary.readers.push_back(graph_.nodes()[reader].name);
        }
        if (outputs_.contains(value)) {
            boundary.readers.push_back("outputs");
        }
        boundary.reason = Reason(node, value, readers);
        return boundary;
    }

    std::string Reason(const Node& node, ValueId value, const std::vector<size_t>& readers) const {
        const RealizeReason reason = realization_.reasons[value.value()];
        switch (reason) {
            case RealizeReason::kOutput:
                return "it is an output of the model";
            case RealizeReason::kOwnKernel: {
                const Classification classification = Classify(graph_, node, realization_.serial);
                return classification.node_class == NodeClass::kHost
                           ? fmt::format("the host computes it: {}", classification.reason)
                           : fmt::format("{} has kernels of its own", Name(node.operation));
            }
            case RealizeReason::kHostOperand:
                return "the host reads it";
            case RealizeReason::kLoopOperand:
                return "a loop, which is one kernel, reads a part of it in each of its iterations";
            case RealizeReason::kState:
                return "it is written to a state";
            case RealizeReason::kReadOften:
                return "its elements are read so often that computing them again costs more";
            case RealizeReason::kTooLarge:
                return "what is inlined into it is as much as one kernel may hold";
            case RealizeReason::kReduction:
                return ReasonOfReduction(value, readers);
            case RealizeReason::kInlined:
            case RealizeReason::kGiven:
                break;
        }
        return std::string(Name(reason));
    }

    // Why it did not join a kernel that reads it.
    std::string ReasonOfReduction(ValueId value, const std::vector<size_t>& readers) const {
        if (readers.empty()) {
            return "nothing reads it";
        }
        if (readers.size() > 1) {
            return fmt::format("{} kernels read it, and each would compute it again",
                               readers.size());
        }
        const Node& reader = graph_.nodes()[readers[0]];
        switch (Classify(graph_, reader, realization_.serial).node_class) {
            case NodeClass::kOwnKernel:
                return fmt::format("{}, which reads it, has kernels of its own",
                                   Name(reader.operation));
            case NodeClass::kHost:
                return "the host reads it";
            case NodeClass::kState:
                return "it is written to a state";
            case NodeClass::kInline:
            case NodeClass::kReduction:
                break;
        }
        const Obstacle obstacle = realization_.obstacles[value.value()];
        return obstacle == Obstacle::kNone
                   ? "the attention that computes it stores it in the order in which it is read"
                   : fmt::format("in the one kernel that reads it, {}", ClauseOf(obstacle));
    }

    static std::string_view ClauseOf(Obstacle obstacle) {
        switch (obstacle) {
            case Obstacle::kTooLarge:
                return "it would be more operations than one kernel may hold";
            case Obstacle::kTooManyBuffers:
                return "it would be more loops, or more to read from memory, than one kernel may "
                       "have";
            case Obstacle::kRepeated:
                return "it would be computed more than once";
            case Obstacle::kLosesTiles:
                return "a product, which it is or holds, would not be computed in tiles";
            case Obstacle::kNoRow:
                return "what is inlined into it would be computed more than once";
            case Obstacle::kNone:
                break;
        }
        return "";
    }

    // The node and those that are inlined into its kernel, by name; several of the graph's may be
    // of one node of the model.
    std::vector<std::string> NodesOf(const Node& root) const {
        std::vector<std::string> names = {root.name};
        std::set<std::string> known = {root.name, ""};
        std::set<ValueId> seen;
        std::vector<ValueId> pending = root.operands;
        while (!pending.empty()) {
            const ValueId value = pending.back();
            pending.pop_back();
            const Node* node = graph_.Producer(value);
            if (realization_.realized[value.value()] || node == nullptr ||
                !seen.insert(value).second) {
                continue;
            }
            if (known.insert(node->name).second) {
                names.push_back(node->name);
            }
            pending.insert(pending.end(), node->operands.begin(), node->operands.end());
        }
        return names;
    }

    // The nodes whose kernels read a value.
    std::vector<size_t> NodesThatRead(ValueId value) const {
        std::set<size_t> nodes;
        for (const Readers::Reader& reader : readers_.Of(value)) {
            nodes.insert(reader.node);
        }
        return {nodes.begin(), nodes.end()};
    }

    const Graph& graph_;
    const Realization& realization_;
    const Readers readers_;
    std::set<ValueId> outputs_;  // where the outputs lie
};

}  // namespace

std::string_view Name(RealizeReason reason) {
    constexpr std::string_view kNames[] = {"inlined",
                                           "given",
                                           "an output",
                                           "a kernel of its own",
                                           "read by the host",
                                           "read by a loop",
                                           "written to a state",
                                           "read often",
                                           "a reduction",
                                           "too large to inline"};
    return kNames[static_cast<size_t>(reason)];
}

std::vector<Boundary> ExplainBoundaries(const Graph& graph, const Realization& realization) {
    return Explainer(graph, realization).Run();
}

}  // namespace fornax::graph

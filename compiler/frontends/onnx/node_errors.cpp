// The text of errors that name nodes.
#include "compiler/frontends/onnx/node_errors.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "compiler/frontends/onnx/graph_importer.h"

namespace fornax::onnx_frontend {
namespace {

// The most missing operators, and the most kinds of other problems, that are told one by one.
constexpr size_t kMaxListedOperators = 40;
constexpr size_t kMaxListedKinds = 16;

std::string NameOf(const onnx::NodeProto& node) {
    return !node.name().empty()      ? node.name()
           : node.output_size() != 0 ? node.output(0)
                                     : "without a name";
}

std::string NodesInWords(size_t count) {
    return count == 1 ? "1 node" : fmt::format("{} nodes", count);
}

std::string TextOfMissing(const std::map<std::string, int64_t>& missing) {
    int64_t nodes = 0;
    size_t listed = 0;
    std::string list;
    for (const auto& [name, count] : missing) {
        nodes += count;
        if (++listed <= kMaxListedOperators) {
            list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", name, count);
        }
    }
    if (listed > kMaxListedOperators) {
        list += fmt::format(" and {} more", listed - kMaxListedOperators);
    }
    return fmt::format(
        "{} {} {} that Fornax does not have: {}", nodes, nodes == 1 ? "node uses" : "nodes use",
        missing.size() == 1 ? "an operator" : fmt::format("{} operators", missing.size()), list);
}

// The nodes of one operator and reason, in the order of the model.
struct ProblemKind {
    std::string name;  // of the operator
    std::string clause;
    std::vector<const onnx::NodeProto*> nodes;
};

std::vector<ProblemKind> KindsOf(const std::vector<NodeProblem>& problems) {
    std::vector<ProblemKind> kinds;
    std::set<std::pair<const onnx::NodeProto*, std::string>> known;
    for (const NodeProblem& problem : problems) {
        if (!known.emplace(problem.node, problem.clause).second) {
            continue;
        }
        const std::string name = OperatorName(*problem.node);
        auto kind = std::ranges::find_if(kinds, [&](const ProblemKind& other) {
            return other.name == name && other.clause == problem.clause;
        });
        if (kind == kinds.end()) {
            kind = kinds.insert(kinds.end(), {name, problem.clause, {}});
        }
        kind->nodes.push_back(problem.node);
    }
    return kinds;
}

std::string TextOfKind(const ProblemKind& kind) {
    const std::string first = NameOf(*kind.nodes[0]);
    return kind.nodes.size() == 1
               ? fmt::format("the node {} ({}): {}", first, kind.name, kind.clause)
               : fmt::format("{} nodes as {} ({}): {}", kind.nodes.size(), first, kind.name,
                             kind.clause);
}

std::string TextOfProblems(const std::vector<NodeProblem>& problems) {
    const std::vector<ProblemKind> kinds = KindsOf(problems);
    size_t nodes = 0, listed = 0;
    std::vector<std::string> texts;
    for (const ProblemKind& kind : kinds) {
        nodes += kind.nodes.size();
        if (texts.size() < kMaxListedKinds) {
            listed += kind.nodes.size();
            texts.push_back(TextOfKind(kind));
        }
    }
    if (nodes == 1) {
        return texts[0];
    }
    if (kinds.size() > kMaxListedKinds) {
        texts.push_back(fmt::format("and {} with {} other reasons", NodesInWords(nodes - listed),
                                    kinds.size() - kMaxListedKinds));
    }
    return fmt::format("{} nodes are not supported: {}", nodes, fmt::join(texts, "; "));
}

}  // namespace

std::string OperatorName(const onnx::NodeProto& node) {
    const std::string domain = NormalDomain(node.domain());
    return domain.empty() ? node.op_type() : domain + "." + node.op_type();
}

NodeErrors::NodeErrors(ErrorCode code, std::vector<NodeProblem> problems)
    : BuildError(code, TextOfProblems(problems)), problems_(std::move(problems)) {}

std::string TextOf(const std::map<std::string, int64_t>& missing,
                   const std::vector<NodeProblem>& problems) {
    std::vector<NodeProblem> others;
    std::ranges::copy_if(problems, std::back_inserter(others), [](const NodeProblem& problem) {
        return problem.kind != NodeProblem::Kind::kMissingOperator;
    });
    std::string text = missing.empty() ? "" : TextOfMissing(missing);
    if (!others.empty()) {
        text += (text.empty() ? "" : "; ") + TextOfProblems(others);
    }
    return text;
}

}  // namespace fornax::onnx_frontend

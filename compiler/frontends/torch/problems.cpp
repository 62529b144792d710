// The text of errors that name nodes.
#include "compiler/frontends/torch/problems.h"

#include <algorithm>

#include <fmt/format.h>

namespace fornax::torch_frontend {
namespace {

// The most kinds of problems that are told one by one.
constexpr size_t kMaxListedKinds = 40;

struct ProblemKind {
    const NodeProblem* first = nullptr;
    size_t count = 0;
};

std::string TextOf(const ProblemKind& kind) {
    const NodeProblem& first = *kind.first;
    const std::string where = first.line.empty() ? "" : fmt::format(" at {}", first.line);
    return kind.count == 1 ? fmt::format("the node {} ({}){}: {}", first.name, first.target, where,
                                         first.clause)
                           : fmt::format("{} nodes as {} ({}){}: {}", kind.count, first.name,
                                         first.target, where, first.clause);
}

}  // namespace

std::string TextOf(const std::vector<NodeProblem>& problems) {
    std::vector<ProblemKind> kinds;
    for (const NodeProblem& problem : problems) {
        const auto kind = std::ranges::find_if(kinds, [&](const ProblemKind& other) {
            return other.first->target == problem.target && other.first->clause == problem.clause;
        });
        if (kind == kinds.end()) {
            kinds.push_back({&problem, 1});
        } else {
            ++kind->count;
        }
    }
    if (problems.size() == 1) {
        return TextOf(kinds[0]);
    }
    std::vector<std::string> texts;
    for (size_t i = 0; i < std::min(kinds.size(), kMaxListedKinds); ++i) {
        texts.push_back(TextOf(kinds[i]));
    }
    if (kinds.size() > kMaxListedKinds) {
        texts.push_back(fmt::format("and {} other reasons", kinds.size() - kMaxListedKinds));
    }
    return fmt::format("{} nodes are not supported: {}", problems.size(), fmt::join(texts, "; "));
}

}  // namespace fornax::torch_frontend

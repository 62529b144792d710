// Names for programs in Python.
#include <algorithm>

#include "compiler/graph/export/exported_model.h"

namespace fornax::graph {
namespace {

// Keywords, and what the exported script uses.
constexpr std::string_view kTaken[] = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield",    "self",
    "torch", "len",      "int",   "min",    "max"};

}  // namespace

std::string PythonIdentifier(std::string_view name) {
    std::string result;
    for (const char c : name) {
        const bool is_plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        result += is_plain ? c : '_';
    }
    // The script's own functions begin with an underscore.
    if (result.empty() || result.front() == '_' ||
        (result.front() >= '0' && result.front() <= '9')) {
        result = "v" + result;
    }
    return std::ranges::count(kTaken, result) != 0 ? result + "_" : result;
}

std::map<std::string, std::string> PythonNames(const Graph& graph) {
    std::map<std::string, std::string> names;
    const auto add = [&](const std::string& name) { names[name] = PythonIdentifier(name); };
    for (const ValueId input : graph.inputs()) {
        add(graph[input].name);
    }
    for (const Output& output : graph.outputs()) {
        add(output.name);
    }
    for (const Node& node : graph.nodes()) {
        if (const auto* read = std::get_if<op::ReadState>(&node.operation)) {
            add(read->state);
        } else if (const auto* write = std::get_if<op::WriteState>(&node.operation)) {
            add(write->state);
        }
    }
    return names;
}

}  // namespace fornax::graph

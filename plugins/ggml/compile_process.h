// The graph compiler as a process of its own: `fornax compile GRAPH -o PLAN`.
#pragma once

#include <string>

#include "base/result.h"
#include "compiler/graph/compile.h"

namespace fornax::ggml_plugin {

// The plan that the command `compiler`, a path or a name in PATH, makes of the graph's text. Files
// in between are in a directory of their own that is removed again.
Result<graph::Plan> CompileInProcess(const std::string& compiler,
                                     const graph::Graph& graph,
                                     const graph::CompileOptions& options);

}  // namespace fornax::ggml_plugin

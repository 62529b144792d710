// The frontend of PyTorch: an FX graph of core ATen in, a graph of the graph compiler out.
//
// The file is that of fx_graph.fbs, which the Python package writes of torch.export and
// torch.compile. It is not trusted: sizes, shapes and references are checked.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/frontends/torch/graph_file.h"
#include "compiler/graph/ir/graph.h"

namespace fornax::torch_frontend {

struct ImportOptions {
    // What symbols are expected to be: their hints, instead of what the file says.
    std::map<std::string, int64_t> dims;
    // The shapes that inputs are expected to have: hints where the file has symbols, and they have
    // to be the file's where that has numbers.
    std::map<std::string, std::vector<int64_t>> input_shapes;
};

struct ImportedGraph {
    graph::Graph graph;
    // The locations, beside the file, of all files of weights that it names.
    std::set<std::string> external_files;
};

// The prefix of the names of outputs that hold what inputs of these names hold after a run. Inputs
// that change in place are states of the graph instead.
inline constexpr std::string_view kMutatedPrefix = "mutated.";

// Errors are one sentence that names the file, all nodes that are not supported with their lines in
// the model's source, and the reasons.
Result<ImportedGraph> ImportGraph(const GraphFile& file,
                                  const std::string& name,
                                  const ImportOptions& options);

// The nodes, by number, that cannot be imported; `reasons` gets a clause for each. The values of
// such a node are taken to be as the file says.
Result<std::vector<uint32_t>> UnsupportedNodes(const GraphFile& file,
                                               const std::string& name,
                                               std::vector<std::string>* reasons);

// What the graph says of itself without being imported.
struct GraphPorts {
    std::vector<std::string> names;        // of the inputs
    std::vector<graph::TensorType> types;  // sizes that are not symbols are constant
    size_t output_count = 0;
};
Result<GraphPorts> ReadGraphPorts(const GraphFile& file, const std::string& name);

}  // namespace fornax::torch_frontend

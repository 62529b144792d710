// The ONNX frontend: an .onnx file in, a graph of the graph compiler out.
//
// Models of opset 6 to 28 are read, with all element types, functions of their own, subgraphs and
// data in files beside them. Files are not trusted: sizes, shapes and references are checked.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/graph.h"

namespace fornax::onnx_frontend {

// The versions of the operator set of ONNX that the importer knows; of most operators those from 6
// on.
inline constexpr int64_t kFirstOpset = 1;
inline constexpr int64_t kLastOpset = 28;

struct ImportOptions {
    // What dimensions with a name are expected to be. They stay symbols; these are their hints.
    std::map<std::string, int64_t> dims;
    // The hint of dimensions that `dims` does not have.
    int64_t default_dim = 1;
    // The shapes that inputs are expected to have: hints where the model has names, sizes where it
    // says nothing, and they have to be the model's where that has numbers.
    std::map<std::string, std::vector<int64_t>> input_shapes;
    // What inputs are expected to hold, for those that decide shapes. An input that is asked for is
    // named in ImportedModel::fixed_inputs, and the graph is right for this value only. Items of
    // sequences are inputs of the names "name.0", "name.1", ...
    std::map<std::string, graph::Tensor> input_values;
    // The number of items of inputs that are sequences; -1 for an optional that is empty.
    std::map<std::string, int64_t> sequence_lengths;
    // Refuses what would run on the host.
    bool strict = false;
};

struct ImportedModel {
    graph::Graph graph;
    // Inputs for whose value in ImportOptions::input_values alone the graph is right.
    std::vector<std::string> fixed_inputs;
    // For every output of the model: the number of graph outputs "name.0", ... that it has become
    // because it is a sequence, or -1 for a tensor, which is one output of its name, or -2 for an
    // optional that is empty.
    std::map<std::string, int64_t> output_lengths;
    // The locations, below the model's directory, of all files of external data that it names.
    std::set<std::string> external_files;
};

// Imports the model that is the contents of a file called `name`; `directory` is where its external
// data are (empty: it may have none). Errors are one sentence that names the file, the node where
// there is one, and the reason.
Result<ImportedModel> ImportModel(const std::string& bytes,
                                  const std::string& name,
                                  const std::string& directory,
                                  const ImportOptions& options);
// The same of a file, which is never in memory as a whole.
Result<ImportedModel> ImportModelFile(const std::string& path, const ImportOptions& options);

}  // namespace fornax::onnx_frontend

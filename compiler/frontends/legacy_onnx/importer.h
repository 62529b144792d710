// The ONNX frontend: an .onnx file in, a graph of the graph compiler out.
//
// Uses the distribution's ONNX library for the file format and for each operator's schema. Files
// are not trusted: sizes, shapes and references are checked before use.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "compiler/legacy_graph/graph.h"

namespace fornax::legacy_onnx {

struct ImportOptions {
    // The size of symbolic first dimensions of inputs, the batch.
    int64_t batch = 1;
    // Sizes of symbolic dimensions by name; these win over `batch`.
    std::map<std::string, int64_t> dimensions;
};

// Imports the model that is the contents of a file called `name`. Errors are one sentence that
// names the file, the node where there is one, and the reason.
Result<legacy_graph::Graph> ImportModelBytes(const std::string& bytes,
                                             const std::string& name,
                                             const ImportOptions& options);

}  // namespace fornax::legacy_onnx

// Importing models that are messages in memory rather than files, whole or to learn which of their
// nodes can be imported: for programs that ask what they may hand over.
#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/frontends/onnx/importer.h"

namespace fornax::onnx_frontend {

// The tensors of initializers that the message has without data, by name.
using InitializerValues = std::map<std::string, graph::Tensor>;

// ImportModel() of a message, which loses the data of its initializers.
Result<ImportedModel> ImportModelMessage(onnx::ModelProto& model,
                                         const std::string& name,
                                         const InitializerValues& values,
                                         const ImportOptions& options);

// A clause that says why a node of the graph that was made is not wanted; "" if it is.
using NodeFilter = std::function<std::string(const graph::Graph& graph, const graph::Node& node)>;

struct NodeCheck {
    // By node of the model's graph: "" if it can be imported and the filter takes all that became
    // of it, else the reason as a clause.
    std::vector<std::string> reasons;
    // The number of dimensions of the tensors that nodes which are taken give.
    std::map<std::string, size_t> ranks;
};

// Checks the nodes one after the other. What a node that is not taken would give is an input for
// those behind it, of the type in the graph's value_info; if that has none, they are not taken.
// Values decide no shapes: `options.input_values` are not asked for. Takes the message as
// ImportModelMessage() does.
Result<NodeCheck> CheckNodes(onnx::ModelProto& model,
                             const InitializerValues& values,
                             const ImportOptions& options,
                             const NodeFilter& filter);

}  // namespace fornax::onnx_frontend

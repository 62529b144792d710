// Graphs of onnxruntime as ONNX messages, which the importer reads.
#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/frontends/onnx/model_message.h"
#include "plugins/onnxruntime/api.h"

namespace fornax::onnxruntime_plugin {

// Some nodes of a graph as a model of their own.
struct Capture {
    // What the nodes read and do not compute are its inputs, in the order in which it is read
    // first. value_info has the types of all that they compute. Small constants have data, larger
    // ones are in `weights`.
    onnx::ModelProto model;
    // Constants where onnxruntime has them: valid as long as the graph that was captured.
    onnx_frontend::InitializerValues weights;
    // By node: "" or a clause that says why no message holds it.
    std::vector<std::string> refused;
};

// Whether the graph may be taken at its word about a value of no dimensions, since onnxruntime says
// the same of values of which it does not know how many they have. The types of others are left
// out.
using TrustScalar = std::function<bool(const std::string& name)>;

// `graph` is the one that the nodes are in; its operator sets count.
Result<Capture> CaptureNodes(const Api& api,
                             const OrtGraph* graph,
                             std::span<const OrtNode* const> nodes,
                             const TrustScalar& trust);

// The names of what a node reads, from outside of its subgraphs too, and what it computes; ""
// where there is nothing.
struct NodeNames {
    std::vector<std::string> reads;
    std::vector<std::string> writes;
};
Result<NodeNames> NamesOf(const Api& api, const OrtNode* node);

}  // namespace fornax::onnxruntime_plugin

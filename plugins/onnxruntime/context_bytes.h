// What nodes EPContext hold of a compiled partition, as bytes that are not trusted.
//
// A partition whose sizes are known is a plan file. One with open sizes is the partition's nodes,
// with a checksum; its weights stay initializers of the model.
#pragma once

#include <onnx/onnx_pb.h>

#include <memory>
#include <string>
#include <variant>

#include "base/result.h"
#include "compiler/frontends/onnx/model_message.h"

namespace fornax::onnxruntime_plugin {

// kDataLoss: what is wrong with a compiled partition, as a clause.
Error DamagedContext(const std::string& what);

std::string SerializeContext(const onnx::ModelProto& partition);

// The bytes of a plan, or a partition. Fails with kDataLoss for others.
struct PlanBytes {
    std::shared_ptr<const std::string> bytes;
};
using Context = std::variant<PlanBytes, onnx::ModelProto>;
Result<Context> ParseContext(std::string bytes);

// Whether sizes of the partition's inputs are open.
bool IsOpen(const onnx::GraphProto& graph);

// Weights are no part of a partition's message: they are told apart by the digest of their names
// and contents, which is the graph's doc_string.
std::string DigestOf(const onnx_frontend::InitializerValues& weights);

// Whether a partition that was parsed has open sizes, and all its constants with the weights that
// the model has for it, which must be those that it was made with: plans in the cache are found by
// the message. Fails with kDataLoss.
Status CheckPartition(const onnx::GraphProto& graph,
                      const onnx_frontend::InitializerValues& weights);

}  // namespace fornax::onnxruntime_plugin

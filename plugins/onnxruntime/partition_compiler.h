// A partition's nodes to a plan, apart from onnxruntime.
#pragma once

#include <onnx/onnx_pb.h>

#include "compiler/frontends/onnx/model_message.h"
#include "runtime/compile_model.h"

namespace fornax::onnxruntime_plugin {

// A copy at an address at which devices can use it in place.
graph::Bytes CopyOf(const graph::ByteSpan& bytes);

// The plan of the partition for the request, whose file is not looked at. `weights` are those of
// its constants that have no data; what the plan has of them is copied.
Result<runtime::CompiledModel> CompilePartition(const onnx::ModelProto& partition,
                                                const onnx_frontend::InitializerValues& weights,
                                                const runtime::CompileRequest& request);

}  // namespace fornax::onnxruntime_plugin

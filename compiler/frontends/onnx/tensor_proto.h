// Reading TensorProto messages, whether initializers, attributes or files.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>

#include "compiler/graph/ir/types.h"

namespace fornax::onnx_frontend {

// The element type of a TensorProto.DataType; fails (BuildError) for those that there is none for.
graph::ElementType ElementTypeOf(int64_t data_type);
int32_t DataTypeOf(graph::ElementType element);

// The tensor in the message, whose external data are in files below `directory`. Fails (BuildError)
// when the message is not whole.
graph::Tensor ReadTensor(const onnx::TensorProto& proto, const std::string& directory);
// The same of a message that is read once: its raw data become the tensor's without a copy.
graph::Tensor TakeTensor(onnx::TensorProto& proto, const std::string& directory);
graph::Tensor ReadSparseTensor(const onnx::SparseTensorProto& proto, const std::string& directory);

}  // namespace fornax::onnx_frontend

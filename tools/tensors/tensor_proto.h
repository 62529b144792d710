// Tensors as TensorProto messages, which .pb files hold.
#pragma once

#include <onnx/onnx_pb.h>

#include "compiler/graph/ir/types.h"

namespace fornax::tensors {

void WriteTensor(const graph::Tensor& tensor, onnx::TensorProto& proto);

}  // namespace fornax::tensors

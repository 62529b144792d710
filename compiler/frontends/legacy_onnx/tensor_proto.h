// Reading TensorProto messages, whether initializers, attributes or files.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/legacy_graph/types.h"

namespace fornax::legacy_onnx {

// "FLOAT", "INT64", ...
std::string DataTypeName(int32_t data_type);

// A checked shape from the message's dimensions; errors are clauses.
Result<legacy_graph::Shape> ReadShape(const onnx::TensorProto& tensor);

// The elements of a FLOAT tensor, or of an INT64, INT32, UINT8 or BOOL tensor. Fail, with a clause,
// when the type is another or the data do not hold the shape's elements.
Result<std::vector<float>> ReadFloats(const onnx::TensorProto& tensor);
Result<std::vector<int64_t>> ReadIntegers(const onnx::TensorProto& tensor);

}  // namespace fornax::legacy_onnx

// Random changes of ONNX models, for the fuzz target: most leave a model that can be read.
#pragma once

#include <onnx/onnx_pb.h>

#include <random>

namespace fornax::onnx_frontend {

// One change: a node, attribute, constant, input, type, name, subgraph or function. The model has a
// graph afterwards.
void ChangeModel(onnx::ModelProto& model, std::mt19937& random);

// Both models as one, some inputs of the second being values of the first.
void JoinModels(onnx::ModelProto& first, const onnx::ModelProto& second, std::mt19937& random);

}  // namespace fornax::onnx_frontend

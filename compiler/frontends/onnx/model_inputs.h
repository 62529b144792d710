// What an ONNX model says of its inputs, without importing it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/types.h"

namespace fornax::onnx_frontend {

struct ModelInput {
    std::string name;
    // Sizes with a name in the model are symbols of that name, others "INPUT.AXIS", as the importer
    // calls them. Nothing for what is no tensor.
    std::optional<graph::TensorType> type;
    bool has_shape = false;  // else the rank is not known either
};

// The inputs of the model in these bytes, without those that have a constant. Skips all but them,
// so that it takes no time for large models. Errors are sentences that call the model `name`.
Result<std::vector<ModelInput>> ReadModelInputs(const std::string& bytes, const std::string& name);

}  // namespace fornax::onnx_frontend

// What an ONNX model says of its inputs and outputs, without importing it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
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

struct ModelPorts {
    std::vector<ModelInput> inputs;  // without those that have a constant
    size_t output_count = 0;
    bool has_only_tensors = true;  // among inputs and outputs
};

// The inputs and outputs of the model in these bytes. Skips all but them, so that it takes no time
// for large models. Errors are sentences that call the model `name`.
Result<ModelPorts> ReadModelPorts(std::span<const std::byte> bytes, const std::string& name);

}  // namespace fornax::onnx_frontend

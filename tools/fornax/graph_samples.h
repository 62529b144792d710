// A set of samples run through a plan of a fixed batch size.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/frontends/legacy_onnx/tensor_file.h"
#include "compiler/legacy_graph/plan.h"

namespace fornax::tool {

using legacy_onnx::HostTensor;

// How the samples of the inputs are cut into runs of a plan.
struct Batching {
    size_t samples = 0;  // in all; the last run may be filled up with zeros
    size_t per_run = 0;
    size_t runs = 0;
};

// Fits input tensors, one for each input of the plan, to the plan. Either every tensor has exactly
// the shape of its input, which is one run, or all have the same, other first dimension: then each
// is a list of samples, and runs take as many as the plan's first dimension says.
Result<Batching> PlanBatches(const legacy_graph::Plan& plan, std::span<const HostTensor> inputs);

using RunFunction = std::function<Status(std::span<const std::span<const float>> inputs,
                                         std::span<const std::span<float>> outputs)>;

// Calls `run` once a batch and returns the outputs of all samples, one tensor for each output of
// the plan.
Result<std::vector<HostTensor>> RunBatches(const legacy_graph::Plan& plan,
                                           const Batching& batching,
                                           std::span<const HostTensor> inputs,
                                           const RunFunction& run);

// The index of the greatest value in each row of `scores` [samples, classes].
std::vector<size_t> ArgMax(const HostTensor& scores);

}  // namespace fornax::tool

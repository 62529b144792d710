// What the runtime asks of the graph compiler and its frontends: a model file in, a plan out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/plan/plan.h"
#include "runtime/sizes.h"

namespace fornax::runtime {

using graph::Precision;

// A stage of loading, for indicators of progress.
struct LoadProgress {
    std::string_view stage;  // "importing", with static lifetime
    // How much of it is done; 0 of 0 where that is not known.
    size_t done = 0;
    size_t total = 0;
};
// May be called from several threads, one at a time.
using ProgressFunction = std::function<void(const LoadProgress&)>;

struct CompileRequest {
    // The model, or a plan file that was made of one: its contents, what messages call it, and
    // where its external data are (empty: it may have none).
    std::shared_ptr<const std::string> bytes;
    std::string name;
    std::string directory;

    std::map<std::string, int64_t> dims;       // named dimensions: what they are expected to be
    std::map<std::string, Dims> input_shapes;  // inputs: the sizes that the plan must be for
    // What inputs hold, for those whose values decide shapes.
    std::map<std::string, graph::Tensor> input_values;
    Precision precision = Precision::kHighest;
    bool bfloat16_products = false;  // graph::CompileOptions: what the device is fast at
    bool strict = false;             // refuses what would run on the host
    // The names of sizes that the plan is to hold for whatever they are, graph::CompileOptions.
    std::set<std::string> dynamic_sizes;
    ProgressFunction progress;  // may be empty
    bool with_boundaries = false;
};

struct CompiledModel {
    graph::Plan plan;
    // The types of the model's inputs and outputs, which may be for more sizes than the plan's.
    // Empty: they are the plan's.
    std::vector<graph::TensorType> input_types;
    std::vector<graph::TensorType> output_types;
    // Inputs for whose value in CompileRequest::input_values alone the plan is right.
    std::vector<std::string> fixed_inputs;
    // The functions that the plan's host calls need; null if it has none. They live as long as the
    // process.
    const graph::HostFunctions* host_functions = nullptr;
    // Why values lie in memory between kernels, if it was asked for and the plan is not of a file.
    std::vector<graph::Boundary> boundaries;
};

// May be called from several threads. Lets go of the bytes when they are read, so that they and the
// plan's constants do not take memory at the same time.
using ModelCompiler = std::function<Result<CompiledModel>(CompileRequest)>;

// The compiler that libfornax is linked with: ONNX models through the graph compiler. A plan file
// is read as it is; the sizes, values and precision in the request are those that it was made with.
Result<CompiledModel> CompileModel(CompileRequest request);

}  // namespace fornax::runtime

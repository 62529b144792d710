// What the runtime asks of the graph compiler and its frontends: a model file in, a plan out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/plan/plan.h"
#include "runtime/plan/sizes.h"

namespace fornax::onnx_frontend {
struct ImportedModel;
}  // namespace fornax::onnx_frontend

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

// A model, or a plan file that was made of one. A file is read when it is needed, and not kept.
struct ModelFile {
    std::string path;                          // "": there is none
    std::shared_ptr<const std::string> bytes;  // its contents, if there is no path
    std::vector<graph::Bytes> pieces;          // of an FX graph: what lies behind the bytes

    // What messages call it, and where its external data are ("": it may have none).
    std::string name() const { return path.empty() ? "model" : path; }
    std::string directory() const;
};

struct CompileRequest {
    ModelFile file;
    std::map<std::string, int64_t> dims;       // named dimensions: what they are expected to be
    std::map<std::string, Dims> input_shapes;  // inputs: the sizes that the plan must be for
    // What inputs hold, for those whose values decide shapes.
    std::map<std::string, graph::Tensor> input_values;
    Precision precision = Precision::kHighest;
    bool bfloat16_products = false;  // graph::CompileOptions: what the device is fast at
    bool strict = false;             // refuses what would run on the host
    bool serial = false;             // graph::CompileOptions: one processor, no workgroups
    // See graph::CompileOptions. A plan file is for the sizes that it is for.
    DynamicSizes dynamic_sizes;
    ProgressFunction progress;  // may be empty
    bool with_boundaries = false;
};

struct CompiledModel {
    // Its fixed inputs are those for whose value in CompileRequest::input_values alone it is right.
    graph::Plan plan;
    // The functions that the plan's host calls need; null if it has none. They live as long as the
    // process.
    const graph::HostFunctions* host_functions = nullptr;
    // Why values lie in memory between kernels, if it was asked for and the plan is not of a file.
    std::vector<graph::Boundary> boundaries;
    // The model's graph as it was imported, without the bytes of constants, where boundaries are.
    std::string graph_text;
    // The files, below the model's directory, that the plan was made of besides the model.
    std::set<std::string> external_files;
};

// What a model says of itself without being compiled.
struct ModelDescription {
    std::vector<std::string> names;        // of the inputs
    std::vector<graph::TensorType> types;  // open sizes are symbols of the names in CompileRequest
    size_t output_count = 0;
};

struct ModelCompiler {
    // Nothing where it can only be told by compiling.
    std::function<Result<std::optional<ModelDescription>>(const ModelFile&)> describe;
    // May be called from several threads.
    std::function<Result<CompiledModel>(CompileRequest)> compile;
    // A digest of everything besides the request that decides what becomes of a model.
    Hash128 digest;
    // The host functions of plans that `compile` made earlier; null if they need none.
    const graph::HostFunctions* host_functions = nullptr;
};

// The compiler that libfornax is linked with: ONNX models and FX graphs of PyTorch through the
// graph compiler. A plan file is read as it is; the sizes, values and precision in the request are
// those that it was made with.
Result<CompiledModel> CompileModel(CompileRequest request);
// The same from a model that was imported for the request, whose file is not looked at.
Result<CompiledModel> CompileImported(onnx_frontend::ImportedModel model,
                                      const CompileRequest& request);
// A plan file as a model.
Result<CompiledModel> ReadPlanModel(const CompileRequest& request);
void ReportStage(const CompileRequest& request, std::string_view stage);
Result<std::optional<ModelDescription>> DescribeModel(const ModelFile& file);
// A node of an FX graph that is not supported, by number, and a clause that says why.
struct UnsupportedNode {
    uint32_t node = 0;
    std::string reason;
};
// Those of the file of an FX graph, in their order.
Result<std::vector<UnsupportedNode>> CheckTorchGraph(const ModelFile& file);
ModelCompiler LinkedCompiler();

}  // namespace fornax::runtime

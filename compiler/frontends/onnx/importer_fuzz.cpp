// Coverage-guided fuzzing of the importer and of the graph compiler behind it: any bytes as a
// model, which ends as an error or as a valid plan whose kernels have SPIR-V.
#include "compiler/frontends/onnx/importer.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdlib>

#include "base/fuzz_outcomes.h"
#include "base/hash.h"
#include "compiler/frontends/onnx/fuzz_mutations.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/plan/plan_kernel.h"

namespace {

using namespace fornax;
using Random = std::mt19937;

constexpr size_t kMaxCompiledNodes = 5000;

bool Parse(const uint8_t* data, size_t size, onnx::ModelProto& model) {
    return model.ParseFromArray(data, static_cast<int>(size)) && model.has_graph();
}

// 0 if it is larger than that.
size_t Write(const onnx::ModelProto& model, uint8_t* data, size_t max_size) {
    const std::string bytes = model.SerializeAsString();
    if (bytes.size() > max_size) {
        return 0;
    }
    std::ranges::copy(bytes, reinterpret_cast<char*>(data));
    return bytes.size();
}

// Our own errors, which no model may lead to.
void CheckError(const char* what, const Error& error) {
    if (error.code == ErrorCode::kInternal) {
        std::fprintf(stderr, "%s: %s\n", what, error.message.c_str());
        std::abort();
    }
}

// How many nodes the compiler will have, but for loops that it unrolls.
size_t PrimitivesOf(const graph::Graph& graph) {
    size_t count = 0;
    for (const graph::Node& node : graph.nodes()) {
        ++count;
        for (const graph::Body& body : node.bodies) {
            count += PrimitivesOf(*body);
        }
    }
    return count;
}

void CheckPlan(const graph::Plan& plan) {
    const Status valid = graph::ValidatePlan(plan);
    if (!valid.ok()) {
        std::fprintf(stderr, "ValidatePlan: %s\n", valid.error().message.c_str());
        std::abort();
    }
    for (const graph::PlanKernel& kernel : plan.kernels) {
        for (const bool matrices : {true, false}) {
            // Other kernels are the same with matrices and without.
            if (matrices && kernel.loop.mapping != graph::loop::Mapping::kProduct &&
                kernel.loop.mapping != graph::loop::Mapping::kAttention) {
                continue;
            }
            graph::loop::Target target;
            target.matrices_f32 = matrices;
            const auto module = graph::CodeOf(kernel, target);
            if (!module.ok()) {
                CheckError("CodeOf", module.error());
            }
        }
    }
}

}  // namespace

// Most of the time of small runs is what the allocator keeps for its reports: of where memory was
// allocated one frame is enough, and what was freed needs not be kept for long.
extern "C" const char* __asan_default_options() {
    return "malloc_context_size=1:quarantine_size_mb=4";
}

// libFuzzer's own change of bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Changed bytes seldom leave a model, changed nodes do.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t max_size,
                                          unsigned seed) {
    Random random(seed);
    if (random() % 16 == 0) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    onnx::ModelProto model;
    if (!Parse(data, size, model)) {
        model.Clear();
    }
    for (uint32_t changes = random() % 3 + 1; changes != 0; --changes) {
        onnx_frontend::ChangeModel(model, random);
    }
    const size_t written = Write(model, data, max_size);
    return written != 0 ? written : LLVMFuzzerMutate(data, size, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1,
                                            size_t size1,
                                            const uint8_t* data2,
                                            size_t size2,
                                            uint8_t* out,
                                            size_t max_out_size,
                                            unsigned seed) {
    Random random(seed);
    onnx::ModelProto first, second;
    if (!Parse(data1, size1, first) || !Parse(data2, size2, second)) {
        return 0;
    }
    onnx_frontend::JoinModels(first, second, random);
    return Write(first, out, max_out_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    // The model's bytes choose how it is compiled, so that a finding is one file.
    const Hash128 hash = HashBytes(std::as_bytes(std::span(data, size)));
    onnx_frontend::ImportOptions options;
    options.default_dim = std::array{1, 2, 3, 17}[hash.low % 4];
    options.strict = hash.low / 4 % 8 == 0;
    Result<onnx_frontend::ImportedModel> model =
        onnx_frontend::ImportModel(bytes, "fuzz", "", options);
    if (!model.ok()) {
        FuzzOutcomes::Count(false);
        CheckError("ImportModel", model.error());
        return 0;
    }
    const Status valid = graph::Verify(model->graph);
    if (!valid.ok()) {
        std::fprintf(stderr, "Verify: %s\n", valid.error().message.c_str());
        std::abort();
    }
    // Compiling takes as long as the graph is large, which the importer bounds.
    if (PrimitivesOf(model->graph) > kMaxCompiledNodes) {
        FuzzOutcomes::Count(true);
        return 0;
    }
    graph::CompileOptions compile_options;
    compile_options.strict = options.strict;
    if (hash.low / 32 % 2 == 0) {
        compile_options.dynamic_sizes = {"batch", "n"};
    }
    const Result<graph::Plan> plan = graph::Compile(std::move(model->graph), compile_options);
    FuzzOutcomes::Count(plan.ok());
    if (plan.ok()) {
        CheckPlan(*plan);
    } else {
        CheckError("Compile", plan.error());
    }
    return 0;
}

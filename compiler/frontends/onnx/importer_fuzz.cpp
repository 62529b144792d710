// Coverage-guided fuzzing of the importer and of the graph compiler behind it: any bytes as a
// model, which ends as an error or as a valid plan whose kernels have SPIR-V.
#include "compiler/frontends/onnx/importer.h"

#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/fuzz_outcomes.h"
#include "base/hash.h"
#include "compiler/frontends/onnx/fuzz_mutations.h"
#include "compiler/graph/testing/fuzz_checks.h"

namespace {

using namespace fornax;
using namespace fornax::graph::fuzzing;
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

}  // namespace

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
    graph::CompileOptions compile_options;
    compile_options.strict = options.strict;
    if (hash.low / 32 % 2 == 0) {
        compile_options.dynamic_sizes = {"batch", "n"};
    }
    FuzzOutcomes::Count(CheckGraph(std::move(model->graph), compile_options, kMaxCompiledNodes));
    return 0;
}

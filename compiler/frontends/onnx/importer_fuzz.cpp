// Coverage-guided fuzzing of the importer and the compiler behind it: any bytes as a model.
//   cmake -DFORNAX_FUZZ=ON -DFORNAX_SANITIZE=address,undefined ...; fornax_onnx_importer_fuzz
//   models/
#include <cstdlib>
#include <string>

#include "compiler/frontends/onnx/importer.h"
#include "compiler/graph/compile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    fornax::Result<fornax::graph::Graph> graph =
        fornax::onnx_frontend::ImportModelBytes(bytes, "fuzz", {.batch = 2, .dimensions = {}});
    if (!graph.ok()) {
        return 0;
    }
    const fornax::Result<fornax::graph::Plan> plan = fornax::graph::Compile(std::move(*graph), {});
    // An internal error is a bug of a pass or of lowering.
    if (!plan.ok() && plan.error().code != fornax::ErrorCode::kUnsupported) {
        std::abort();
    }
    return 0;
}

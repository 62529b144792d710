// The options and what they mean to the importer and the compiler.
#include "tools/fornax/graph_options.h"

#include <charconv>

#include <fmt/format.h>

namespace fornax::tool {

void GraphOptions::AddTo(CLI::App& command) {
    command.add_option("model", path, "An ONNX model, or a plan file of `fornax compile`")
        ->required();
    command
        .add_option("--batch", batch,
                    fmt::format("Samples at a time, where the model leaves it open (default {})",
                                kDefaultBatch))
        ->check(CLI::Range(int64_t{1}, legacy_graph::Shape::kMaxElements));
    command
        .add_option("--dim", dimensions, "NAME=SIZE: the size of a symbolic dimension of the model")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command.add_flag("--no-fusion", no_fusion, "Keep every operator of the model a dispatch");
    command.add_flag("--no-cache", no_cache, "Neither look into the cache nor write to it");
}

Result<PlanRequest> GraphOptions::ToRequest(int64_t default_batch) const {
    PlanRequest request;
    request.path = path;
    request.import.batch = batch != 0 ? batch : default_batch;
    request.compile.fuse = !no_fusion;
    request.use_cache = !no_cache;
    for (const std::string& dimension : dimensions) {
        const size_t equals = dimension.find('=');
        int64_t size = 0;
        const char* end = dimension.data() + dimension.size();
        const bool good = equals != std::string::npos && equals != 0 &&
                          std::from_chars(dimension.data() + equals + 1, end, size).ptr == end &&
                          size >= 1;
        if (!good) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("--dim {} is not of the form NAME=SIZE with a size of 1 or "
                                     "more.",
                                     dimension)};
        }
        request.import.dimensions[dimension.substr(0, equals)] = size;
    }
    return request;
}

}  // namespace fornax::tool

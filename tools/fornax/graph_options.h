// Command-line options that `run` and `compile` share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/fornax/command.h"
#include "tools/fornax/graph_plan_source.h"

namespace fornax::tool {

// Samples that go through a network at once when the model leaves the number open.
inline constexpr int64_t kDefaultBatch = 64;

struct GraphOptions {
    std::string path;
    int64_t batch = 0;  // 0 stands for the default
    std::vector<std::string> dimensions;
    bool no_fusion = false;
    bool no_cache = false;

    void AddTo(CLI::App& command);
    // Fails when an option does not have its form. `default_batch` stands in for --batch.
    Result<PlanRequest> ToRequest(int64_t default_batch) const;
};

}  // namespace fornax::tool

// What `run` prints about a plan and its results: tables and lists of text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/legacy_graph/plan.h"
#include "tools/fornax/graph_samples.h"

namespace fornax::tool {

// The dispatches with kernel, grid and time. `nanoseconds` is the time of each, a mean of several
// runs, or empty.
std::string DispatchTable(const legacy_graph::Plan& plan, std::span<const double> nanoseconds);

// Every tensor's place and lifetime, and what sharing memory saved.
std::string MemoryTable(const legacy_graph::Plan& plan);

// All predictions, with the wrong ones listed, and the accuracy. `labels` may be empty.
std::string PredictionReport(const HostTensor& scores, std::span<const int64_t> labels);

}  // namespace fornax::tool

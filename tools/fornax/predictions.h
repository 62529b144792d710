// What a classifier says: the greatest scores of each sample by name, and how many are right.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/types.h"
#include "tools/fornax/command.h"

namespace fornax::tool {

struct PredictionOptions {
    std::string labels;  // a text file with a class's name a line
    size_t top = 0;      // how many are listed of each sample; 0: none, but 5 with `labels`
    std::string truth;   // a tensor file with the right class of each sample

    void AddTo(CLI::App& command);
};

// Reads the first output as scores [samples..., classes]. "" if nothing is asked for.
Result<std::string> DescribePredictions(const PredictionOptions& options,
                                        const std::vector<graph::Tensor>& outputs);

}  // namespace fornax::tool

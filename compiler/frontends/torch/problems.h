// What is told of nodes that cannot be imported: all of them at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace fornax::torch_frontend {

// One node that cannot be imported.
struct NodeProblem {
    ErrorCode code = ErrorCode::kUnsupported;
    uint32_t node = 0;  // its number in the file
    std::string target, name, line;
    std::string clause;
};

// One clause: nodes of one operator and reason together, with their number and the first one's
// line.
std::string TextOf(const std::vector<NodeProblem>& problems);

}  // namespace fornax::torch_frontend

// Chooses the nodes of a graph that the provider takes.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "plugins/onnxruntime/api.h"

namespace fornax::onnxruntime_plugin {

struct Claim {
    struct Group {
        std::vector<const OrtNode*> nodes;
        // Whether the sizes of all that it reads are known, so that its plan needs no other one.
        bool is_static = true;
    };
    std::vector<Group> groups;
    struct Left {
        std::string node;
        std::string reason;  // a clause
    };
    std::vector<Left> left;
    size_t node_count = 0;
};

// Takes what the importer takes and the device computes, and nothing that a later compilation
// would refuse for what the partition alone says.
Result<Claim> ChooseNodes(const Api& api, const OrtGraph* graph);

// Whether the node is a compiled partition of this provider.
Result<bool> IsContextNode(const Api& api, const OrtNode* node);

}  // namespace fornax::onnxruntime_plugin

// A node's level is the number of times that a path to it leaves the taken nodes. It never falls
// along an edge, and a path that leaves a level does not come back, so the taken nodes of a level
// are a group.
#include "plugins/onnxruntime/grouping.h"

#include <algorithm>
#include <limits>
#include <map>

namespace fornax::onnxruntime_plugin {

std::vector<std::vector<size_t>> GroupNodes(std::span<const GroupNode> nodes) {
    std::vector<size_t> levels(nodes.size(), 0);
    for (size_t i = 0; i < nodes.size(); ++i) {
        for (const size_t source : nodes[i].sources) {
            const bool leaves = nodes[source].is_taken && !nodes[i].is_taken;
            levels[i] = std::max(levels[i], levels[source] + (leaves ? 1 : 0));
        }
    }
    // The highest level that the nodes that read each one allow. Nodes come behind what they read.
    constexpr size_t kNone = std::numeric_limits<size_t>::max();
    std::vector<size_t> most(nodes.size(), kNone);
    for (size_t i = nodes.size(); i-- > 0;) {
        if (nodes[i].is_taken && most[i] != kNone) {
            levels[i] = std::max(levels[i], most[i]);
        }
        for (const size_t source : nodes[i].sources) {
            const size_t level = nodes[i].is_taken || levels[i] == 0 ? levels[i] : levels[i] - 1;
            most[source] = std::min(most[source], level);
        }
    }
    std::map<size_t, std::vector<size_t>> groups;
    for (size_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i].is_taken) {
            groups[levels[i]].push_back(i);
        }
    }
    std::vector<std::vector<size_t>> result;
    for (auto& [level, group] : groups) {
        result.push_back(std::move(group));
    }
    return result;
}

}  // namespace fornax::onnxruntime_plugin

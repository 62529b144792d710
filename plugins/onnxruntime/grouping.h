// Which nodes of a graph become partitions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fornax::onnxruntime_plugin {

struct GroupNode {
    std::vector<size_t> sources;  // the nodes that it reads from, all of them in front of it
    bool is_taken = false;
};

// The taken nodes in as few groups as can be, each in order: no path between two nodes of a group
// leads through a node that is not in it. A node that only a later group reads is in that one, so
// that what is known of its value is known there.
std::vector<std::vector<size_t>> GroupNodes(std::span<const GroupNode> nodes);

}  // namespace fornax::onnxruntime_plugin

// What the hash of a captured graph tells apart.
#include "plugins/ggml/capture.h"

#include <functional>
#include <set>

#include <gtest/gtest.h>

namespace fornax::ggml_plugin {
namespace {

using ggml_frontend::FindType;
using ggml_frontend::Graph;

// c = MUL_MAT(a, b).
Graph Product() {
    Graph graph;
    for (uint32_t i = 0; i < 3; ++i) {
        ggml_frontend::Tensor& tensor = graph.tensors.emplace_back();
        tensor.name = std::string(1, static_cast<char>('a' + i));
        tensor.type = FindType("f32");
        tensor.ne = {4, 3, 1, 1};
        tensor.nb = {4, 16, 48, 48};
        tensor.storage = i;
        ggml_frontend::Storage& storage = graph.storages.emplace_back();
        storage.type = tensor.type;
        storage.ne = tensor.ne;
    }
    graph.tensors[2].operation = "MUL_MAT";
    graph.tensors[2].sources = {0, 1};
    graph.nodes = {2};
    return graph;
}

TEST(GgmlCapture, EveryPartCountsInTheHash) {
    const std::vector<std::function<void(Graph&)>> changes = {
        [](Graph&) {},
        [](Graph& graph) { graph.tensors[2].operation = "ADD"; },
        [](Graph& graph) { graph.tensors[2].sources = {1, 0}; },
        [](Graph& graph) { graph.tensors[2].sources = {0, 0}; },
        [](Graph& graph) { graph.tensors[2].sources = {0, 1, -1}; },
        [](Graph& graph) { graph.tensors[2].parameters[0] = 1; },
        [](Graph& graph) { graph.tensors[2].parameters[15] = 1; },
        [](Graph& graph) { graph.tensors[0].type = FindType("f16"); },
        [](Graph& graph) { graph.tensors[0].type = nullptr; },
        [](Graph& graph) { graph.tensors[0].ne = {3, 4, 1, 1}; },
        [](Graph& graph) { graph.tensors[0].nb = {4, 32, 96, 96}; },
        [](Graph& graph) { graph.tensors[1].storage = 0; },
        [](Graph& graph) { graph.tensors[1].offset = 4; },
        [](Graph& graph) { graph.nodes = {2, 2}; },
        [](Graph& graph) { graph.storages[0].type = FindType("f16"); },
        [](Graph& graph) { graph.storages[0].ne = {8, 3, 1, 1}; },
        [](Graph& graph) { graph.storages[0].is_kept = false; },
        [](Graph& graph) { graph.storages[0].is_shared = true; },
        [](Graph& graph) { graph.storages[0].is_weights = true; },
        [](Graph& graph) { graph.in_place = true; },
    };
    std::set<std::string> hashes;
    for (const auto& change : changes) {
        Graph graph = Product();
        change(graph);
        hashes.insert(HashOf(graph).ToHex());
    }
    EXPECT_EQ(hashes.size(), changes.size());
    EXPECT_EQ(hashes.begin()->size(), 32u);
    // Names are for messages.
    Graph renamed = Product();
    renamed.tensors[0].name = "weight";
    EXPECT_EQ(HashOf(renamed), HashOf(Product()));
}

}  // namespace
}  // namespace fornax::ggml_plugin

// The names that exports give to what ggml names.
#include "plugins/ggml/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fornax::ggml_plugin {
namespace {

TEST(GgmlExport, NamesAreIdentifiersAndUnique) {
    ggml_frontend::Graph graph;
    const std::vector<std::string> names = {
        "blk.0.attn_q.weight", "blk-0 attn_q weight", "0", "lambda", "", "x (view)"};
    for (uint32_t i = 0; i < names.size(); ++i) {
        ggml_frontend::Tensor tensor;
        tensor.name = names[i];
        tensor.storage = i;
        tensor.ne = {4, 1, 1, 1};
        graph.tensors.push_back(tensor);
        graph.storages.emplace_back().ne = {i == 5 ? 8 : 4, 1, 1, 1};
    }
    EXPECT_THAT(PortNames(graph),
                testing::ElementsAre(testing::Pair("m0", "blk_0_attn_q_weight"),
                                     testing::Pair("m1", "blk_0_attn_q_weight_2"),
                                     testing::Pair("m2", "v0"), testing::Pair("m3", "lambda_"),
                                     testing::Pair("m4", "v"), testing::Pair("m5", "x")));
    // A tensor that is the whole storage wins over the view that came before it.
    ggml_frontend::Tensor whole = graph.tensors.back();
    whole.name = "y";
    whole.ne = {8, 1, 1, 1};
    graph.tensors.push_back(whole);
    EXPECT_EQ(PortNames(graph).at("m5"), "y");
}

}  // namespace
}  // namespace fornax::ggml_plugin

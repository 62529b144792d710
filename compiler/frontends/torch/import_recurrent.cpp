// Layers of recurrent networks that torch leaves whole.
#include <fmt/format.h>

#include "compiler/frontends/torch/operator_families.h"
#include "compiler/graph/build/recurrent.h"

namespace fornax::torch_frontend {
namespace {

// torch's gates i, f, g, o along axis 0 in the order of the decomposition: i, o, f, g.
Val ReorderGates(Val v, const Expr& hidden) {
    const auto gate = [&](int64_t number) {
        return graph::SliceAxis(v, 0, hidden * number, hidden);
    };
    return graph::Concat({gate(0), gate(3), gate(1), gate(2)}, 0);
}

// One layer and direction of an LSTM.
void ImportRnnLayer(Node& node) {
    constexpr int64_t kLstm = 2;
    if (node.Int("mode") != kLstm) {
        FailUnsupported(fmt::format("its mode is {}, not that of an LSTM", node.Int("mode")));
    }
    if (node.Int("num_layers") != 1 || node.Bool("bidirectional") || node.Bool("batch_first")) {
        FailUnsupported("it is not one layer and direction of [time, batch, inputs]");
    }
    if (!node.Ints("batch_sizes").empty()) {
        FailUnsupported("its sequences have different lengths");
    }
    const Expr hidden = node.Size("hidden_size");
    graph::RecurrentOperands in;
    in.x = node.In("input");
    in.w = graph::Unsqueeze(ReorderGates(node.In("weight0"), hidden), 0);
    in.r = graph::Unsqueeze(ReorderGates(node.In("weight1"), hidden), 0);
    if (node.Bool("has_biases")) {
        in.bias = graph::Unsqueeze(graph::Concat({ReorderGates(node.In("weight2"), hidden),
                                                  ReorderGates(node.In("weight3"), hidden)},
                                                 0),
                                   0);
    }
    in.h = node.In("hx_");
    in.c = node.In("cx_");
    graph::RecurrentOptions options;
    options.kind = graph::RecurrentKind::kLstm;
    options.reversed = {node.Bool("reverse")};
    options.activations = {{"sigmoid"}, {"tanh"}, {"tanh"}};
    const graph::RecurrentResult result = graph::Recurrent(in, options);
    node.Out(0, graph::Squeeze(result.y, 1));
    node.Out(1, result.h);
    node.Out(2, result.c);
}

constexpr OperatorEntry kOperators[] = {
    {"mkldnn_rnn_layer.default", ImportRnnLayer},
};

}  // namespace

std::span<const OperatorEntry> RecurrentOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend

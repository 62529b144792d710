// Attention and what goes with it.
#include <cmath>

#include <fmt/format.h>

#include "compiler/frontends/onnx/graph_importer.h"
#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/attention.h"
#include "compiler/graph/build/convolve.h"
#include "compiler/graph/build/index.h"

namespace fornax::onnx_frontend {
namespace {

using graph::FloorDiv;
using graph::Scores;

// [batch, positions, heads * size] to [batch, heads, positions, size].
Val HeadsOut(Val x, int64_t heads) {
    if (heads < 1) {
        FailInvalid(fmt::format("it has {} heads", heads));
    }
    const Shape s = x.shape();
    if (s.rank() != 3) {
        FailInvalid(fmt::format("an operand is {}, not batch, positions and heads", s.ToString()));
    }
    return graph::Permute(graph::Reshape(x, {s[0], s[1], heads, FloorDiv(s[2], heads)}),
                          {0, 2, 1, 3});
}

Val HeadsIn(Val x) {
    return graph::Reshape(graph::Permute(x, {0, 2, 1, 3}),
                          {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

double DefaultScale(Node& node, const Expr& size) {
    return 1 / std::sqrt(static_cast<double>(node.builder().sizes().Fix(size)));
}

void ImportAttention(Node& node) {
    Builder& b = node.builder();
    graph::AttentionOperands in;
    in.query = node.In(0);
    in.key = node.In(1);
    in.value = node.In(2);
    in.mask = node.Opt(3);
    const bool flat = in.query.rank() == 3;
    if (flat) {
        const int64_t heads = node.Int("q_num_heads"), key_heads = node.Int("kv_num_heads");
        in.query = HeadsOut(in.query, heads);
        in.key = HeadsOut(in.key, key_heads);
        in.value = HeadsOut(in.value, key_heads);
    }
    graph::AttentionOptions options;
    options.causal = node.Int("is_causal", 0) != 0;
    options.softcap = node.Float("softcap", 0);
    options.left_window = node.Int("left_window_size", -1);
    options.right_window = node.Int("right_window_size", -1);
    options.scale =
        node.HasAttribute("scale") ? node.Float("scale", 1) : DefaultScale(node, in.query.dim(-1));
    options.softmax = node.Type("softmax_precision", ElementType::kF32);
    const bool positions = options.causal || options.left_window >= 0 || options.right_window >= 0;
    if (node.Has(4)) {
        if (positions) {
            in.offset = b.Size(node.In(4).dim(2));
        }
        in.key = graph::Concat({node.In(4), in.key}, 2);
        in.value = graph::Concat({node.In(5), in.value}, 2);
    }
    if (node.Has(6)) {
        in.lengths = graph::Cast(node.In(6), ElementType::kI64);
        if (positions && !node.Has(4)) {
            in.offset = in.lengths - b.Size(in.query.dim(2));
        }
    }
    constexpr Scores kModes[] = {Scores::kProducts, Scores::kCapped, Scores::kMasked,
                                 Scores::kProbabilities};
    const int64_t mode = node.Int("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3) {
        FailInvalid(fmt::format("its qk_matmul_output_mode is {}, not in 0..3", mode));
    }
    const graph::AttentionResult result =
        graph::Attention(in, options, node.Wants(3) ? kModes[mode] : Scores::kNone);
    node.Out(0, flat ? HeadsIn(result.y) : result.y);
    node.Out(1, in.key);
    node.Out(2, in.value);
    if (node.Wants(3)) {
        node.Out(3, result.scores);
    }
}

void ImportFlexAttention(Node& node) {
    graph::AttentionOptions options;
    const Val q = node.In(0);
    options.scale =
        node.HasAttribute("scale") ? node.Float("scale", 1) : DefaultScale(node, q.dim(-1));
    options.softmax = node.Type("softmax_precision", graph::ComputeType(q.element()));
    const auto function = [&](const char* name) -> std::function<Val(Val)> {
        if (!node.HasAttribute(name)) {
            return nullptr;
        }
        const onnx::GraphProto& graph = node.Subgraph(name);
        return [&node, &graph](Val x) {
            const std::vector<Item> results = node.importer().Inline(graph, {Item(x)});
            if (results.size() != 1 || results[0].kind != Item::Kind::kTensor) {
                FailInvalid("its subgraph does not give one tensor");
            }
            return results[0].tensor;
        };
    };
    options.score_function = function("score_mod");
    options.probability_function = function("prob_mod");
    node.Out(graph::Attention({q, node.In(1), node.In(2), {}, {}, {}}, options, Scores::kNone).y);
}

void ImportRotaryEmbedding(Node& node) {
    Val x = node.In(0), cosine = node.In(1), sine = node.In(2);
    const bool flat = x.rank() == 3;
    if (flat) {
        x = HeadsOut(x, node.Int("num_heads"));
    }
    if (node.Has(3)) {
        cosine = graph::Take(cosine, node.In(3), 0);
        sine = graph::Take(sine, node.In(3), 0);
    }
    const int64_t given = node.Int("rotary_embedding_dim", 0);
    const Expr rotated = given == 0 ? x.dim(-1) : Expr(given);
    const Val y = graph::RotaryEmbedding(x, cosine, sine, rotated, node.Int("interleaved", 0) != 0);
    node.Out(flat ? HeadsIn(y) : y);
}

void ImportLinearAttention(Node& node) {
    Builder& b = node.builder();
    const int64_t heads = node.Int("q_num_heads"), key_heads = node.Int("kv_num_heads");
    const std::string rule = node.Text("update_rule", "gated_delta");
    const bool gated = rule == "gated" || rule == "gated_delta";
    const bool delta = rule == "delta" || rule == "gated_delta";
    if ((!gated && !delta && rule != "linear") || gated != node.Has(4) || delta != node.Has(5)) {
        FailInvalid(fmt::format("its update rule \"{}\" does not fit its inputs", rule));
    }
    graph::LinearAttentionOperands in;
    in.query = HeadsOut(node.In(0), heads);
    in.key = HeadsOut(node.In(1), key_heads);
    in.value = HeadsOut(node.In(2), key_heads);
    in.state = node.Has(3)
                   ? node.In(3)
                   : b.Full(in.query.element(),
                            {in.query.dim(0), key_heads, in.key.dim(3), in.value.dim(3)}, 0);
    const auto per_head = [&](Val x) {
        return graph::Permute(graph::Reshape(x, {x.dim(0), x.dim(1), x.dim(2), 1}), {0, 2, 1, 3});
    };
    if (gated) {
        const Val decay = node.In(4);
        in.decay =
            b.sizes().Equal(decay.dim(2), key_heads) ? per_head(decay) : HeadsOut(decay, key_heads);
    }
    if (delta) {
        in.beta = per_head(node.In(5));
    }
    double scale = node.Float("scale", 0);
    scale = scale == 0 ? DefaultScale(node, in.query.dim(-1)) : scale;
    const graph::LinearAttentionResult result = graph::LinearAttention(in, scale);
    node.Out(0, HeadsIn(result.y));
    node.Out(1, result.state);
}

void ImportCausalConv(Node& node) {
    const Val x = node.In(0), w = node.In(1);
    if (x.rank() != 3 || w.rank() != 3) {
        FailInvalid(fmt::format("the input is {} and the weights are {}", x.shape().ToString(),
                                w.shape().ToString()));
    }
    const std::string activation = node.Text("activation", "none");
    if (activation != "none" && activation != "silu" && activation != "swish") {
        FailInvalid(fmt::format("its activation is \"{}\"", activation));
    }
    const Expr before = w.dim(2) - 1;
    const Val past = node.Has(3)
                         ? node.In(3)
                         : node.builder().Full(x.element(), {x.dim(0), x.dim(1), before}, 0);
    const Val padded = graph::Concat({past, x}, 2);
    const graph::SpatialWindow window{{w.dim(2)}, {1}, {1}, {Expr(0)}, {Expr(0)}};
    const Val y = graph::Convolve(padded, w, node.Opt(2), window,
                                  node.builder().sizes().Fix(x.dim(1)), x.element());
    node.Out(0, activation == "none" ? y : graph::Swish(y, 1));
    node.Out(1, graph::SliceAxis(padded, 2, padded.dim(2) - before, before));
}

constexpr OperatorEntry kOperators[] = {
    {"Attention", 3, ImportAttention},
    {"CausalConvWithState", 2, ImportCausalConv},
    {"FlexAttention", 3, ImportFlexAttention, 1, "ai.onnx.preview"},
    {"LinearAttention", 3, ImportLinearAttention},
    {"RotaryEmbedding", 3, ImportRotaryEmbedding},
};

}  // namespace

std::span<const OperatorEntry> AttentionOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend

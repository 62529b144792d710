// Operators of single architectures: the indexer of sparse attention, and hyper-connections.
#include "compiler/frontends/ggml/node.h"

namespace fornax::ggml_frontend {
namespace {

using graph::Combine;
using graph::ElementType;
using graph::Shape;
using graph::Val;

// Queries [streams, tokens, heads, size], keys [streams, keys, 1, size], a weight for each token
// and head: the positive products of all heads, weighted, and a mask of fewer streams.
Val LightningIndexer(const Node& node) {
    const Val query = node.Float(0), key = node.Float(1), weight = node.Float(2);
    const Tensor &of_query = node.source(0), &of_key = node.source(1), &of_weight = node.source(2);
    const int64_t heads = of_query.ne[1], tokens = of_query.ne[2], streams = of_query.ne[3],
                  keys = of_key.ne[2];
    if (of_key.ne[1] != 1 || of_key.ne[3] != streams || of_weight.ne[0] != heads ||
        of_weight.ne[1] != tokens || of_weight.ne[2] != 1 || of_weight.ne[3] != streams) {
        graph::FailUnsupported("these dimensions are not covered");
    }
    const Val keys_of_stream = Reshape(key, Shape({streams, keys, of_key.ne[0]}));
    const Val products = Max(Contract(query, keys_of_stream, "sthd,skd->sthk"), 0);
    const Val weighted = products * Reshape(weight, Shape({streams, tokens, heads, 1}));
    const Val scores = Reshape(Sum(weighted, {2}, false), node.shape());
    if (!node.has(3)) {
        return scores;
    }
    const Val mask = SliceAxis(node.Float(3), 2, 0, tokens);
    return scores + RepeatTo(mask, node.shape());
}

// --- Hyper-connections ---------------------------------------------------------------------------

// The streams x [1, tokens, streams, size] joined by weights, or by the gate of each element.
Val JoinStreams(const Node& node) {
    const Val x = node.Float(0), weight = node.Float(1);
    if (node.integer(1) != 0) {
        return Reshape(Sum(x * map::Sigmoid(weight), {2}, false) * node.number(0), node.shape());
    }
    const Tensor& of_x = node.source(0);
    const Val by_stream = Reshape(weight, Shape({1, of_x.ne[2], of_x.ne[1], 1}));
    return Reshape(Sum(x * by_stream, {2}, false), node.shape());
}

// x [1, 1, tokens, size] to each stream by a weight, and the streams as they were, mixed.
Val SpreadToStreams(const Node& node) {
    const Val x = node.Float(0), before = node.Float(1), weight = node.Float(2);
    const Tensor& of_before = node.source(1);
    const int64_t size = of_before.ne[0], streams = of_before.ne[1], tokens = of_before.ne[2];
    Val result =
        Reshape(x, Shape({tokens, 1, size})) * Reshape(weight, Shape({tokens, streams, 1}));
    const Val old = Reshape(before, Shape({tokens, streams, size}));
    if (node.has(3)) {
        const Val mix = Reshape(node.Float(3), Shape({tokens, streams, streams}));
        // [.., from, to]
        result = result + Contract(mix, old, "tfo,tfd->tod");
    } else {
        result = result + old;
    }
    return Reshape(result, node.shape());
}

// A matrix of streams for each token: a softmax, then sums of columns and rows brought to 1.
Val MixOfStreams(const Node& node) {
    constexpr int64_t kStreams = 4;
    const double epsilon = node.number(0);
    const int32_t iterations = node.integer(1);
    constexpr int32_t kMostIterations = 64;
    if (node.tensor().ne[0] != kStreams || node.tensor().ne[1] != kStreams || iterations < 1 ||
        iterations > kMostIterations) {
        graph::FailUnsupported("these dimensions are not covered");
    }
    constexpr int64_t kFirst = 2 * kStreams, kCount = kStreams * kStreams;
    const int64_t tokens = node.source(0).ne[1];
    const Shape shape({tokens, kStreams, kStreams});  // [.., from, to]
    const Val scale = Reshape(SliceAxis(node.Float(1), 3, 2, 1), Shape({1, 1, 1}));
    const Val base =
        Reshape(SliceAxis(node.Float(2), 3, kFirst, kCount), Shape({1, kStreams, kStreams}));
    const Val mixes = Reshape(SliceAxis(node.Float(0), 3, kFirst, kCount), shape);
    const Val scores = mixes * scale + base;
    const Val power = map::Exp(scores - Reduce(Combine::kMax, scores, {2}, true));
    Val mix = power / Sum(power, {2}) + epsilon;
    const auto normalised = [&](int64_t axis) { return mix / (Sum(mix, {axis}) + epsilon); };
    mix = normalised(1);
    for (int32_t i = 1; i < iterations; ++i) {
        mix = normalised(2);
        mix = normalised(1);
    }
    return Reshape(mix, node.shape());
}

constexpr Operator kOperators[] = {
    {"LIGHTNING_INDEXER", LightningIndexer},
    {"DSV4_HC_PRE", JoinStreams},
    {"DSV4_HC_POST", SpreadToStreams},
    {"DSV4_HC_COMB", MixOfStreams},
};

}  // namespace

std::span<const Operator> IndexerOperators() {
    return kOperators;
}

}  // namespace fornax::ggml_frontend

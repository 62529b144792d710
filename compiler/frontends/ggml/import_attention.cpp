// Rotations of positions, softmax with masks, attention.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "compiler/frontends/ggml/node.h"

namespace fornax::ggml_frontend {
namespace {

using graph::Combine;
using graph::ElementType;
using graph::Expr;
using graph::Shape;
using graph::Val;

// --- Rotary embeddings ---------------------------------------------------------------------------

// Which elements are a pair: neighbours, else of two halves. The others have four positions a
// token, each for a section of the pairs, which come one after the other or by turns.
constexpr int32_t kNeighbours = 0, kHalves = 2, kSections = 8, kImage = 24, kInterleaved = 40;
constexpr size_t kPositions = 4;

struct Rotation {
    int64_t first = 0, dims = 0;  // the elements that are rotated
    int32_t mode = 0;
    std::vector<float> scales;     // by pair: the angle of position 1
    std::vector<size_t> sections;  // by pair: which of the positions; empty: there is one
    float magnitude = 1;
};

// The section of each pair, and how many pairs of its section precede it.
struct Section {
    size_t index = 0;
    int64_t place = 0;
};
Section SectionOf(const Node& node, int32_t mode, int64_t pair) {
    int64_t sizes[kPositions], all = 0;
    for (size_t i = 0; i < kPositions; ++i) {
        sizes[i] = node.integer(11 + i);
        if (sizes[i] < 0) {
            graph::FailInvalid("a section of positions has a negative size");
        }
        all += sizes[i];
    }
    if (all == 0) {
        graph::FailInvalid("the sections of positions are empty");
    }
    const int64_t place = pair % all;
    if (mode == kInterleaved) {
        const auto turn = static_cast<size_t>(place % 3);
        return {place < 3 * sizes[turn] ? turn : 3, place};
    }
    size_t index = 0;
    int64_t begin = 0;
    while (index + 1 < kPositions && place >= begin + sizes[index]) {
        begin += sizes[index++];
    }
    return {index, place - begin};
}

// The pair whose angle turns `turns` times within the context that a model was trained with.
float PairOfTurns(int64_t dims, int32_t context, float turns, float base) {
    return static_cast<float>(dims) *
           std::log(static_cast<float>(context) / (turns * 2 * std::numbers::pi_v<float>)) /
           (2 * std::log(base));
}

// Angles after "YaRN": pairs that turn often within the context keep theirs, those that turn rarely
// have theirs scaled, with a ramp between.
Rotation RotationOf(const Node& node) {
    Rotation rotation;
    rotation.first = node.integer(15);
    rotation.dims = node.integer(1);
    rotation.mode = node.integer(2);
    const int32_t context = node.integer(4);
    const float base = node.number(5), scale = node.number(6), mix = node.number(7),
                beta_fast = node.number(9), beta_slow = node.number(10);
    rotation.magnitude = node.number(8);
    const int64_t dims = rotation.dims;
    const bool has_sections =
        rotation.mode == kSections || rotation.mode == kImage || rotation.mode == kInterleaved;
    if (rotation.mode == kImage) {
        // Angles are as of half the elements, of which all are rotated.
        rotation.dims *= 2;
        if (rotation.first != 0 || rotation.dims != node.tensor().ne[0]) {
            graph::FailUnsupported("parts of images' positions are not covered");
        }
    }
    if ((rotation.mode != kNeighbours && rotation.mode != kHalves && !has_sections) || dims < 2 ||
        dims % 2 != 0 || rotation.first < 0 ||
        rotation.first + rotation.dims > node.tensor().ne[0]) {
        graph::FailUnsupported("this mode of rotation is not covered");
    }
    const auto last = static_cast<float>(dims - 1);
    const float low = std::max(0.0F, std::floor(PairOfTurns(dims, context, beta_fast, base)));
    const float high = std::min(last, std::ceil(PairOfTurns(dims, context, beta_slow, base)));
    for (int64_t pair = 0; pair < rotation.dims / 2; ++pair) {
        int64_t place = pair;
        if (has_sections) {
            const Section section = SectionOf(node, rotation.mode, pair);
            rotation.sections.push_back(section.index);
            place = rotation.mode == kImage ? section.place : pair;
        }
        const float exponent = -2 * static_cast<float>(place) / static_cast<float>(dims);
        const float angle = std::pow(base, exponent);
        float share = 0;  // of the angle that is not scaled
        if (mix != 0) {
            const float ramp = (static_cast<float>(pair) - low) / std::max(0.001F, high - low);
            share = (1 - std::clamp(ramp, 0.0F, 1.0F)) * mix;
        }
        rotation.scales.push_back(angle * (scale * (1 - share) + share));
    }
    if (mix != 0) {
        rotation.magnitude *= 1 + 0.1F * std::log(1 / scale);
    }
    return rotation;
}

Val Rotated(const Node& node, bool backward) {
    const Rotation rotation = RotationOf(node);
    const Val x = node.Float(0);  // [i3, positions, heads, elements]
    graph::Builder& builder = node.builder();
    const int64_t pairs = rotation.dims / 2;
    const int64_t tokens = node.tensor().ne[2];
    const bool has_sections = !rotation.sections.empty();
    const auto positions = static_cast<int64_t>(has_sections ? kPositions : 1);
    if (node.source(1).count() != positions * tokens) {
        graph::FailInvalid("the positions are not those of the tokens");
    }
    const Val position =
        Cast(Reshape(node.Integer(1), Shape({positions, tokens})), ElementType::kF32);
    // [1, tokens, 1, pairs]: each pair takes the position of its section.
    Val angle;
    for (int64_t which = 0; which < positions; ++which) {
        std::vector<float> scales = rotation.scales;
        bool is_used = !has_sections;
        for (size_t pair = 0; has_sections && pair < scales.size(); ++pair) {
            const bool is_its = static_cast<int64_t>(rotation.sections[pair]) == which;
            is_used |= is_its;
            scales[pair] = is_its ? scales[pair] : 0;
        }
        if (is_used) {
            const Val term = Reshape(Select(position, 0, which), Shape({1, tokens, 1, 1})) *
                             Reshape(builder.Constant(graph::Tensor::FromFloats({pairs}, scales)),
                                     Shape({1, 1, 1, pairs}));
            angle = angle ? angle + term : term;
        }
    }
    if (node.has(2)) {
        angle = angle / Reshape(SliceAxis(node.Float(2), 3, 0, pairs), Shape({1, 1, 1, pairs}));
    }
    const Val cosine = map::Cos(angle) * rotation.magnitude;
    const Val sine = map::Sin(angle) * (backward ? -rotation.magnitude : rotation.magnitude);

    // Pairs as [.., pairs, 2] or [.., 2, pairs].
    const bool neighbours = rotation.mode == kNeighbours;
    const int64_t axis = neighbours ? 4 : 3;
    const Shape split = neighbours ? Shape({x.dim(0), x.dim(1), x.dim(2), pairs, 2})
                                   : Shape({x.dim(0), x.dim(1), x.dim(2), 2, pairs});
    const Val turned = Reshape(SliceAxis(x, 3, rotation.first, rotation.dims), split);
    const Val first = SliceAxis(turned, axis, 0, 1), second = SliceAxis(turned, axis, 1, 1);
    const int64_t other = neighbours ? 4 : 3;
    const Val c = Unsqueeze(cosine, other), s = Unsqueeze(sine, other);
    // Both of a pair are computed from both: a choice by position, not a concatenation in memory.
    const Val is_first = graph::Equal(builder.Iota(ElementType::kI32, split, axis), 0);
    const Val a = BroadcastTo(first * c - second * s, split);
    const Val b = BroadcastTo(first * s + second * c, split);
    Val result =
        Reshape(Where(is_first, a, b), Shape({x.dim(0), x.dim(1), x.dim(2), rotation.dims}));
    const int64_t size = node.tensor().ne[0];
    if (rotation.dims == size) {
        return result;
    }
    // The other elements stay.
    const Shape shape = node.shape();
    const int64_t end = rotation.first + rotation.dims;
    result = Pad(result, 0, {0, 0, 0, rotation.first}, {0, 0, 0, size - end});
    const Val place = builder.Iota(ElementType::kI32, shape, 3);
    return Where(And(GreaterEqual(place, static_cast<double>(rotation.first)),
                     Less(place, static_cast<double>(end))),
                 result, x);
}

Val Rope(const Node& node) {
    return Rotated(node, false);
}
Val RopeBack(const Node& node) {
    return Rotated(node, true);
}

// --- Softmax -------------------------------------------------------------------------------------

// The factor of each head's mask, f32 [1, heads, 1, 1]: a falling series ("ALiBi").
Val MaskSlopes(graph::Builder& builder, int64_t heads, float max_bias) {
    int64_t power = 1;
    while (power * 2 <= heads) {
        power *= 2;
    }
    const float first = std::exp2(-max_bias / static_cast<float>(power));
    const float second = std::exp2(-max_bias / 2 / static_cast<float>(power));
    std::vector<float> slopes;
    for (int64_t head = 0; head < heads; ++head) {
        slopes.push_back(head < power
                             ? std::pow(first, static_cast<float>(head + 1))
                             : std::pow(second, static_cast<float>(2 * (head - power) + 1)));
    }
    return Reshape(builder.Constant(graph::Tensor::FromFloats({heads}, slopes)),
                   Shape({1, heads, 1, 1}));
}

// Scores [batch, heads, rows, columns] with the mask added, whose rows may be more.
Val Masked(const Node& node, Val scores, size_t mask, float max_bias) {
    if (!node.has(mask)) {
        return scores;
    }
    const std::vector<int64_t> dims = *scores.shape().Constants();
    Val added = SliceAxis(node.Float(mask), 2, 0, dims[2]);
    Shape shape = added.shape();
    for (const size_t axis : {size_t{0}, size_t{1}}) {
        shape[axis] = dims[axis];
    }
    added = RepeatTo(added, shape);
    if (max_bias > 0) {
        added = added * MaskSlopes(node.builder(), dims[1], max_bias);
    }
    return scores + added;
}

// Softmax along the last axis; a sink is one more score for each head, whose share is dropped.
Val SoftmaxWithSinks(const Node& node, Val scores, size_t sinks) {
    Val greatest = Reduce(Combine::kMax, scores, {3}, true);
    Val sink;
    if (node.has(sinks)) {
        sink = Reshape(node.Float(sinks), Shape({1, scores.dim(1), 1, 1}));
        greatest = map::Max(greatest, sink);
    }
    const Val power = map::Exp(scores - greatest);
    Val sum = Sum(power, {3});
    if (sink) {
        sum = sum + map::Exp(sink - greatest);
    }
    return power / sum;
}

Val SoftMax(const Node& node) {
    const float scale = node.number(0), max_bias = node.number(1);
    const Val scores = Masked(node, node.Float(0) * scale, 1, max_bias);
    return SoftmaxWithSinks(node, scores, 2);
}

Val DiagonalMask(const Node& node) {
    const Val x = node.Float(0);
    const Shape shape = node.shape();
    const Val row = node.builder().Iota(ElementType::kI32, shape, 2) + node.integer(0);
    const Val column = node.builder().Iota(ElementType::kI32, shape, 3);
    const bool zero = node.tensor().operation == "DIAG_MASK_ZERO";
    const double hidden = zero ? 0 : -std::numeric_limits<double>::infinity();
    return Where(map::Less(row, column), Like(x, hidden), x);
}

// --- Attention -----------------------------------------------------------------------------------

// Query [batch, heads, queries, size], key and value of fewer heads; the result has heads and
// queries swapped.
Val FlashAttention(const Node& node) {
    const float scale = node.number(0), max_bias = node.number(1), softcap = node.number(2);
    const Val query = node.Float(0), key = node.Float(1), value = node.Float(2);
    const Tensor &of_query = node.source(0), &of_key = node.source(1);
    if (of_key.ne[2] == 0 || of_query.ne[2] % of_key.ne[2] != 0 || of_key.ne[3] != of_query.ne[3] ||
        node.source(2).ne[2] != of_key.ne[2]) {
        graph::FailUnsupported("these numbers of heads are not covered");
    }
    const Expr batch = query.dim(0), heads = query.dim(1), queries = query.dim(2),
               keys = key.dim(2);
    const int64_t shared = of_query.ne[2] / of_key.ne[2];
    const Val grouped =
        Reshape(query * scale, Shape({batch, key.dim(1), shared, queries, query.dim(3)}));
    Val scores =
        Reshape(Contract(grouped, key, "bgsqd,bgkd->bgsqk"), Shape({batch, heads, queries, keys}));
    if (softcap != 0) {
        scores = map::Tanh(scores / softcap) * softcap;
    }
    scores = Masked(node, scores, 3, max_bias);
    const Val shares = Reshape(SoftmaxWithSinks(node, scores, 4),
                               Shape({batch, key.dim(1), shared, queries, keys}));
    const Val result = Contract(shares, value, "bgsqk,bgkd->bqgsd");
    return Reshape(result, node.shape());
}

constexpr Operator kOperators[] = {
    {"ROPE", Rope},
    {"ROPE_BACK", RopeBack},
    {"SOFT_MAX", SoftMax},
    {"DIAG_MASK_INF", DiagonalMask},
    {"DIAG_MASK_ZERO", DiagonalMask},
    {"FLASH_ATTN_EXT", FlashAttention},
};

}  // namespace

std::span<const Operator> AttentionOperators() {
    return kOperators;
}

}  // namespace fornax::ggml_frontend

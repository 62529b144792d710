// Attention: two contractions with a masked softmax between them.
#include "compiler/graph/build/attention.h"

#include <fmt/format.h>

#include <limits>

#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/index.h"

namespace fornax::graph {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// [.., heads or 1, queries, keys] with the heads as [key heads, heads a key head].
Val SplitHeads(Val x, const Expr& all_heads, const Expr& key_heads, const Expr& repeat) {
    const Shape shape = x.shape();
    std::vector<Expr> dims(shape.dims().begin(), shape.dims().end());
    if (dims.size() < 3) {
        return x;
    }
    const size_t heads = dims.size() - 3;
    const bool one = !x.builder().sizes().Equal(dims[heads], all_heads);
    dims[heads] = one ? Expr(1) : key_heads;
    dims.insert(dims.begin() + static_cast<int64_t>(heads) + 1, one ? Expr(1) : repeat);
    return Reshape(x, Shape(std::move(dims)));
}

// What is added to the scores: a value that broadcasts to [batch, heads, queries, keys], or nothing.
Val MakeBias(Builder& b,
             const AttentionOperands& in,
             const AttentionOptions& options,
             ElementType compute) {
    const Expr queries = in.query.dim(2), keys = in.key.dim(2);
    const Val zero = b.Scalar(compute, 0), never = b.Scalar(compute, -kInfinity);
    Val bias;
    if (in.mask) {
        Val mask = in.mask;
        const Expr given = mask.dim(-1);
        if (!b.sizes().Equal(given, keys) && !b.sizes().Equal(given, 1)) {
            std::vector<Expr> low(static_cast<size_t>(mask.rank()), Expr(0)), high = low;
            high.back() = keys - given;
            const bool boolean = mask.element() == ElementType::kBool;
            mask = Pad(mask, boolean ? b.Integer(ElementType::kBool, 0) : Like(mask, -kInfinity),
                       low, high);
        }
        bias = mask.element() == ElementType::kBool ? Where(mask, zero, never)
                                                    : Cast(mask, compute);
    }
    const Shape square{queries, keys};
    const Val place = b.Iota(ElementType::kI64, square, 1);
    Val position = b.Iota(ElementType::kI64, square, 0);
    if (in.offset) {
        position = position + (in.offset.rank() == 0
                                   ? in.offset
                                   : Reshape(in.offset, {in.offset.dim(0), 1, 1, 1}));
    }
    Val allowed;
    const auto allow = [&](Val condition) { allowed = allowed ? And(allowed, condition) : condition; };
    if (options.causal) {
        allow(map::LessEqual(place, position));
    }
    if (options.left_window >= 0) {
        allow(LessEqual(position - place, static_cast<double>(options.left_window)));
    }
    if (options.right_window >= 0) {
        allow(LessEqual(place - position, static_cast<double>(options.right_window)));
    }
    if (in.lengths) {
        allow(map::Less(b.Iota(ElementType::kI64, Shape{1, 1, 1, keys}, 3),
                        Reshape(in.lengths, {in.lengths.dim(0), 1, 1, 1})));
    }
    if (allowed) {
        bias = Where(allowed, bias ? bias : zero, never);
    }
    return bias;
}

AttentionResult Expand(Builder& b,
                       const AttentionOperands& in,
                       const AttentionOptions& options,
                       Scores wanted) {
    const ElementType type = in.query.element();
    const ElementType compute = options.softmax == ElementType::kF64 ? ElementType::kF64 : ComputeType(type);
    const Shape q = in.query.shape(), k = in.key.shape();
    const Expr repeat = FloorDiv(q[1], k[1]);
    const Shape full{q[0], q[1], q[2], k[2]};
    const Val grouped = Reshape(in.query, {q[0], k[1], repeat, q[2], q[3]});
    const auto whole = [&](Val x) { return Reshape(x, full); };
    Val scores = Contract(Cast(grouped, compute), Cast(in.key, compute), "bhrle,bhse->bhrls") *
                 options.scale;
    AttentionResult result;
    const auto keep = [&](Scores which, Val x) {
        if (wanted == which) {
            result.scores = Cast(whole(x), type);
        }
    };
    keep(Scores::kProducts, scores);
    if (options.softcap > 0) {
        scores = map::Tanh(scores / options.softcap) * options.softcap;
    }
    keep(Scores::kCapped, scores);
    Val bias = MakeBias(b, in, options, compute);
    if (bias) {
        bias = SplitHeads(bias, q[1], k[1], repeat);
        scores = scores + bias;
    }
    keep(Scores::kMasked, scores);
    if (options.score_function) {
        const Val changed = options.score_function(Cast(whole(scores), options.softmax));
        scores = Reshape(Cast(changed, compute), scores.shape());
    }
    const Val e = map::Exp(scores - Reduce(Combine::kMax, scores, {-1}, true));
    Val p = e / Sum(e, {-1});
    if (bias) {
        // A query that sees no key gets 0, not NaN.
        const Val none = Equal(Reduce(Combine::kMax, bias, {-1}, true), -kInfinity);
        p = Where(none, Like(p, 0), p);
    }
    if (options.probability_function) {
        const Val changed = options.probability_function(Cast(whole(p), options.softmax));
        p = Reshape(Cast(changed, compute), p.shape());
    }
    keep(Scores::kProbabilities, p);
    const Val y = Contract(p, Cast(in.value, compute), "bhrls,bhsv->bhrlv");
    result.y = Cast(Reshape(y, {q[0], q[1], q[2], in.value.dim(3)}), type);
    return result;
}

}  // namespace

AttentionResult Attention(const AttentionOperands& operands,
                          const AttentionOptions& options,
                          Scores scores) {
    const Val& q = operands.query;
    const Val& k = operands.key;
    Builder& b = q.builder();
    if (q.rank() != 4 || k.rank() != 4 || operands.value.rank() != 4) {
        FailInvalid(fmt::format("the query {}, key {} and value {} do not have 4 dimensions",
                                q.shape().ToString(), k.shape().ToString(),
                                operands.value.shape().ToString()));
    }
    if (b.sizes().Equal(k.dim(1), 0) || !b.sizes().Equal(Mod(q.dim(1), k.dim(1)), 0)) {
        FailInvalid(fmt::format("{} heads are no multiple of {} key heads", q.dim(1).ToString(),
                                k.dim(1).ToString()));
    }
    if (options.score_function || options.probability_function) {
        return Expand(b, operands, options, scores);
    }
    const Vals results = b.Composite(
        "attention",
        {{"scale", options.scale},
         {"softcap", options.softcap},
         {"causal", int64_t{options.causal}},
         {"left_window", options.left_window},
         {"right_window", options.right_window}},
        {q, k, operands.value, operands.mask, operands.lengths, operands.offset},
        [&](Builder& body, Vals in) -> Vals {
            const AttentionResult result =
                Expand(body, {in[0], in[1], in[2], in[3], in[4], in[5]}, options, scores);
            return result.scores ? Vals{result.y, result.scores} : Vals{result.y};
        });
    return {results[0], results.size() > 1 ? results[1] : Val()};
}

Val RotaryEmbedding(Val x, Val cosine, Val sine, const Expr& rotated, bool interleaved) {
    const Expr size = x.dim(-1), half = FloorDiv(rotated, 2);
    const Val c = Unsqueeze(cosine, 1), s = Unsqueeze(sine, 1);
    const Val part = SliceAxis(x, -1, 0, rotated);
    const Val first = interleaved ? SliceAxis(part, -1, 0, half, 2) : SliceAxis(part, -1, 0, half);
    const Val second = interleaved ? SliceAxis(part, -1, 1, half, 2) : SliceAxis(part, -1, half, half);
    const Val real = c * first - s * second;
    const Val imaginary = s * first + c * second;
    const Val turned = interleaved ? Reshape(Stack({real, imaginary}, -1), part.shape())
                                   : Concat({real, imaginary}, -1);
    return rotated == size ? turned
                           : Concat({turned, SliceAxis(x, -1, rotated, size - rotated)}, -1);
}

LinearAttentionResult LinearAttention(const LinearAttentionOperands& in, double scale) {
    Builder& b = in.query.builder();
    const Shape q = in.query.shape(), k = in.key.shape();
    const Expr repeat = FloorDiv(q[1], k[1]);
    const Expr value_size = in.value.dim(3);
    const ElementType type = in.query.element();
    const auto wide = [](Val x) { return x ? Cast(x, ElementType::kF32) : x; };
    const Val query = Reshape(wide(in.query), {q[0], k[1], repeat, q[2], q[3]});
    Vals read = {query, wide(in.key), wide(in.value)};
    if (in.decay) {
        read.push_back(wide(in.decay));
    }
    if (in.beta) {
        read.push_back(wide(in.beta));
    }
    const Val empty = b.Full(ElementType::kF32, {q[0], k[1], repeat, q[2], value_size}, 0);
    const Vals results = b.Loop(
        b.Size(q[2]), {wide(in.state), empty}, read, [&](Builder&, Vals v) -> Vals {
            const Val t = v[0];
            Val state = v[1];
            const Val query_t = TakeOne(v[3], t, 3), key_t = TakeOne(v[4], t, 2);
            Val value_t = TakeOne(v[5], t, 2);
            if (in.decay) {
                state = state * Unsqueeze(map::Exp(TakeOne(v[6], t, 2)), -1);
            }
            if (in.beta) {
                const Val beta_t = TakeOne(v.back(), t, 2);
                value_t = beta_t * (value_t - Contract(state, key_t, "bhdm,bhd->bhm"));
            }
            state = state + Unsqueeze(key_t, -1) * Unsqueeze(value_t, -2);
            const Val out = Contract(query_t, state, "bhrd,bhdm->bhrm") * scale;
            return {state, PutOne(v[2], t, out, 3)};
        });
    return {Cast(Reshape(results[1], {q[0], q[1], q[2], value_size}), type),
            Cast(results[0], in.state.element())};
}

}  // namespace fornax::graph

// State space models and linear attention: a state that each token changes.
#include <cmath>

#include <fmt/format.h>

#include "compiler/frontends/ggml/node.h"
#include "compiler/graph/build/index.h"

namespace fornax::ggml_frontend {
namespace {

using graph::ElementType;
using graph::Shape;
using graph::Val;
using graph::Vals;

// --- Recurrences ---------------------------------------------------------------------------------

struct Step {
    Val output, state;
};
// A token's step from the state before it and what it reads at that token.
using StepFunction = std::function<Step(Val state, const Vals& at_token)>;

struct Recurrence {
    Val outputs;  // as of one token, with the tokens as a new axis 1
    Vals states;  // the last ones, the newest first
};

// Tokens are axis 1 of all that is read. As many states are returned as `states` says.
Recurrence Recur(Val state, const Vals& read, int64_t states, const StepFunction& step) {
    graph::Builder& builder = state.builder();
    const int64_t tokens = *read[0].dim(1).constant();
    // Few tokens are written out: decoding has one, and states that are returned have to be seen.
    constexpr int64_t kMostUnrolled = 8;
    if (states < 1 || states > std::min(tokens, kMostUnrolled)) {
        graph::FailUnsupported(
            fmt::format("{} states of {} tokens are not covered", states, tokens));
    }
    const int64_t unrolled = tokens <= 2 ? tokens : states - (states == 1 ? 1 : 0);
    const int64_t looped = tokens - unrolled;
    Recurrence result;
    Vals outputs;
    if (looped > 0) {
        const Vals first = [&] {
            Vals at;
            for (const Val& value : read) {
                at.push_back(Select(value, 1, 0));
            }
            return at;
        }();
        // Only the output's shape is of interest here; the nodes are not used.
        const Shape shape = step(state, first).output.shape();
        std::vector<graph::Expr> dims(shape.dims().begin(), shape.dims().end());
        dims.insert(dims.begin() + 1, looped);
        const Val empty = builder.Full(ElementType::kF32, Shape(dims), 0);
        const Vals last = builder.Loop(
            builder.Size(looped), {state, empty}, read, [&](graph::Builder&, Vals values) -> Vals {
                Vals at;
                for (size_t i = 3; i < values.size(); ++i) {
                    at.push_back(graph::TakeOne(values[i], values[0], 1));
                }
                const Step next = step(values[1], at);
                return {next.state, graph::PutOne(values[2], values[0], next.output, 1)};
            });
        state = last[0];
        outputs.push_back(last[1]);
    }
    result.states.push_back(state);
    for (int64_t token = looped; token < tokens; ++token) {
        Vals at;
        for (const Val& value : read) {
            at.push_back(Select(value, 1, token));
        }
        const Step next = step(state, at);
        state = next.state;
        outputs.push_back(Unsqueeze(next.output, 1));
        result.states.insert(result.states.begin(), state);
    }
    result.states.resize(static_cast<size_t>(states));
    result.outputs = outputs.size() == 1 ? outputs[0] : graph::Concat(outputs, 1);
    return result;
}

Val Flat(Val value) {
    return Reshape(value, Shape({value.shape().Volume()}));
}

// The outputs, behind them the states.
Val Joined(const Node& node, const Recurrence& recurrence) {
    Vals parts = {Flat(recurrence.outputs)};
    for (const Val& state : recurrence.states) {
        parts.push_back(Flat(state));
    }
    return Reshape(graph::Concat(parts, 0), node.shape());
}

// --- State space models --------------------------------------------------------------------------

Val Softplus(Val x) {
    return Where(Greater(x, 20), x, map::Log1p(map::Exp(Min(x, 20))));
}

// State [sequences, heads, elements, size]; each sequence begins with the state of its index.
Val StateScan(const Node& node) {
    const Tensor &of_x = node.source(1), &of_b = node.source(4);
    const int64_t elements = of_x.ne[0], heads = of_x.ne[1], tokens = of_x.ne[2],
                  sequences = of_x.ne[3], size = of_b.ne[0], groups = of_b.ne[1];
    if (groups == 0 || heads % groups != 0 || node.source(5).ne[1] != groups) {
        graph::FailInvalid("the heads are not divisible by the groups");
    }
    const Val index = Reshape(node.Integer(6), Shape({sequences}));
    const Val state = graph::Take(node.Float(0), index, 0);
    const Val rate = Softplus(Reshape(node.Float(2), Shape({sequences, tokens, heads})));
    const Val a = Reshape(node.Float(3), Shape({1, heads, 1, node.source(3).ne[0]}));
    // A group's numbers serve several neighbouring heads.
    const auto by_head = [&](Val group) {
        const Shape shape({sequences, groups, heads / groups, size});
        return Reshape(BroadcastTo(Unsqueeze(group, 2), shape), Shape({sequences, heads, 1, size}));
    };
    const int64_t states = std::max(node.integer(0), 1);
    const Recurrence recurrence =
        Recur(state,
              {node.Float(1), rate, node.Float(4), node.Float(5),
               BroadcastTo(Unsqueeze(a, 0), Shape({1, tokens, heads, 1, node.source(3).ne[0]}))},
              states, [&](Val s, const Vals& at) -> Step {
                  const Val dt = Reshape(at[1], Shape({sequences, heads, 1, 1}));
                  const Val x = Unsqueeze(at[0], -1) * dt;  // [sequences, heads, elements, 1]
                  const Val decay = map::Exp(dt * at[4]);
                  const Val next = s * decay + by_head(at[2]) * x;
                  return {Sum(next * by_head(at[3]), {3}, false), next};
              });
    if (elements * heads * tokens * sequences >= node.tensor().count()) {
        graph::FailInvalid("the result has no room for the states");
    }
    return Joined(node, recurrence);
}

// --- Linear attention ----------------------------------------------------------------------------

// [size, heads, all tokens] as [sequences, tokens, heads, size].
Val BySequence(const Node& node, size_t source, int64_t sequences) {
    const Tensor& tensor = node.source(source);
    if (sequences < 1 || tensor.ne[2] % sequences != 0 || tensor.ne[3] != 1) {
        graph::FailInvalid("the tokens are not divisible by the sequences");
    }
    return Reshape(node.Float(source),
                   Shape({sequences, tensor.ne[2] / sequences, tensor.ne[1], tensor.ne[0]}));
}

// The state [sequences, heads, size, size] of source `source`, whose second dimension counts them.
Val StateOf(const Node& node, size_t source, int64_t heads, int64_t size) {
    const int64_t sequences = node.source(source).ne[1];
    if (node.source(source).count() != sequences * heads * size * size) {
        graph::FailInvalid("the state does not have the size of the heads");
    }
    return Reshape(node.Float(source), Shape({sequences, heads, size, size}));
}

// The state's rows are the key's elements, its columns the value's.
Val GatedLinear(const Node& node) {
    const int64_t size = node.source(0).ne[0], heads = node.source(0).ne[1];
    const int64_t sequences = node.source(4).ne[1];
    const float scale = node.number(0);
    const auto at = [&](size_t source) { return BySequence(node, source, sequences); };
    return Joined(node, Recur(StateOf(node, 4, heads, size), {at(0), at(1), at(2), at(3)}, 1,
                              [&](Val state, const Vals& t) -> Step {
                                  const Val next = state * Unsqueeze(t[3], -1) +
                                                   Unsqueeze(t[0], -1) * Unsqueeze(t[1], -2);
                                  return {Contract(t[2] * scale, next, "bhi,bhij->bhj"), next};
                              }));
}

Val Rwkv6(const Node& node) {
    const int64_t size = node.source(0).ne[0], heads = node.source(0).ne[1];
    const int64_t sequences = node.source(5).ne[1];
    const auto at = [&](size_t source) { return BySequence(node, source, sequences); };
    const int64_t tokens = node.source(0).ne[2] / std::max<int64_t>(sequences, 1);
    // What the present token counts more, the same for all.
    const Val bonus = BroadcastTo(Reshape(node.Float(3), Shape({1, 1, heads, size})),
                                  Shape({1, tokens, heads, size}));
    return Joined(node, Recur(StateOf(node, 5, heads, size), {at(0), at(1), at(2), at(4), bonus}, 1,
                              [&](Val state, const Vals& t) -> Step {
                                  const Val outer = Unsqueeze(t[0], -1) * Unsqueeze(t[1], -2);
                                  const Val seen = outer * Unsqueeze(t[4], -1) + state;
                                  return {Contract(t[2], seen, "bhi,bhij->bhj"),
                                          state * Unsqueeze(t[3], -1) + outer};
                              }));
}

// The state's rows are the value's elements here.
Val Rwkv7(const Node& node) {
    const int64_t size = node.source(0).ne[0], heads = node.source(0).ne[1];
    const int64_t sequences = node.source(6).ne[1];
    const auto at = [&](size_t source) { return BySequence(node, source, sequences); };
    return Joined(
        node, Recur(StateOf(node, 6, heads, size), {at(0), at(1), at(2), at(3), at(4), at(5)}, 1,
                    [&](Val state, const Vals& t) -> Step {
                        const Val removed = Contract(state, t[4], "bhij,bhj->bhi");
                        const Val next = state * Unsqueeze(t[1], -2) +
                                         Unsqueeze(t[3], -1) * Unsqueeze(t[2], -2) +
                                         Unsqueeze(removed, -1) * Unsqueeze(t[5], -2);
                        return {Contract(next, t[0], "bhij,bhj->bhi"), next};
                    }));
}

// The delta rule. The state's rows are the value's elements, its columns the key's.
Val GatedDelta(const Node& node) {
    const Tensor& of_v = node.source(2);
    const int64_t size = of_v.ne[0], heads = of_v.ne[1], tokens = of_v.ne[2],
                  sequences = of_v.ne[3];
    if (node.source(5).count() != sequences * heads * size * size) {
        graph::FailUnsupported("this state is not covered");
    }
    const Val state = Reshape(node.Float(5), Shape({sequences, heads, size, size}));
    // Heads of queries and keys come again and again; a sequence of theirs serves several.
    const auto repeated = [&](size_t source) {
        const Tensor& tensor = node.source(source);
        if (tensor.ne[3] == 0 || sequences % tensor.ne[3] != 0) {
            graph::FailInvalid("the sequences are not divisible");
        }
        const Shape shape(
            {tensor.ne[3], sequences / tensor.ne[3], tensor.ne[2], tensor.ne[1], tensor.ne[0]});
        const Val spread = Reshape(BroadcastTo(Unsqueeze(node.Float(source), 1), shape),
                                   Shape({sequences, tokens, tensor.ne[1], tensor.ne[0]}));
        return RepeatTo(spread, Shape({sequences, tokens, heads, tensor.ne[0]}));
    };
    const double scale = 1 / std::sqrt(static_cast<double>(size));
    const int64_t states = std::max(node.integer(0), 1);
    return Joined(
        node, Recur(state, {repeated(0), repeated(1), node.Float(2), node.Float(3), node.Float(4)},
                    states, [&](Val s, const Vals& t) -> Step {
                        s = s * Unsqueeze(map::Exp(t[3]), -2);
                        const Val delta = (t[2] - Contract(s, t[1], "bhji,bhi->bhj")) * t[4];
                        const Val next = s + Unsqueeze(delta, -1) * Unsqueeze(t[1], -2);
                        return {Contract(next, t[0], "bhji,bhi->bhj") * scale, next};
                    }));
}

// --- Triangular systems --------------------------------------------------------------------------

// A lower triangle [.., n, n] times the result is [.., n, k]: row after row.
Val SolveTriangle(const Node& node) {
    const Val a = node.Float(0), b = node.Float(1);
    graph::Builder& builder = node.builder();
    const int64_t n = node.source(0).ne[0];
    const Val empty = builder.Full(ElementType::kF32, node.shape(), 0);
    const Val solved =
        builder.Loop(builder.Size(n), {empty}, {a, b}, [&](graph::Builder& body, Vals v) -> Vals {
            const Val row = graph::TakeOne(v[2], v[0], 2), right = graph::TakeOne(v[3], v[0], 2);
            const Val place = body.Iota(ElementType::kI64, row.shape(), 2);
            const Val zero = Like(row, 0);
            const Val before = Where(map::Less(place, v[0]), row, zero);
            const Val diagonal = Sum(Where(map::Equal(place, v[0]), row, zero), {2});
            const Val known = Contract(before, v[1], "abn,abnk->abk");
            return {graph::PutOne(v[1], v[0], (right - known) / diagonal, 2)};
        })[0];
    return solved;
}

constexpr Operator kOperators[] = {
    {"SSM_SCAN", StateScan}, {"GATED_LINEAR_ATTN", GatedLinear}, {"RWKV_WKV6", Rwkv6},
    {"RWKV_WKV7", Rwkv7},    {"GATED_DELTA_NET", GatedDelta},    {"SOLVE_TRI", SolveTriangle},
};

}  // namespace

std::span<const Operator> RecurrentOperators() {
    return kOperators;
}

}  // namespace fornax::ggml_frontend

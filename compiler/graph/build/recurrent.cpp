// LSTM, GRU and the plain recurrent network: the inputs' products at once, then a loop over time.
#include "compiler/graph/build/recurrent.h"

#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/build/activations.h"

namespace fornax::graph {
namespace {

Val Activate(const RecurrentActivation& activation, Val x) {
    const std::string& name = activation.name;
    if (name == "sigmoid") {
        return map::Sigmoid(x);
    }
    if (name == "tanh") {
        return map::Tanh(x);
    }
    if (name == "relu") {
        return Relu(x);
    }
    if (name == "affine") {
        return x * activation.alpha + activation.beta;
    }
    if (name == "leakyrelu") {
        return LeakyRelu(x, activation.alpha);
    }
    if (name == "thresholdedrelu") {
        return ThresholdedRelu(x, activation.alpha);
    }
    if (name == "scaledtanh") {
        return map::Tanh(x * activation.beta) * activation.alpha;
    }
    if (name == "hardsigmoid") {
        return HardSigmoid(x, activation.alpha, activation.beta);
    }
    if (name == "elu") {
        return Elu(x, activation.alpha);
    }
    if (name == "softsign") {
        return Softsign(x);
    }
    if (name == "softplus") {
        return Softplus(x);
    }
    FailUnsupported(fmt::format("the activation is \"{}\"", name));
}

size_t GateCount(RecurrentKind kind) {
    return kind == RecurrentKind::kRnn ? 1 : kind == RecurrentKind::kGru ? 3 : 4;
}

size_t ActivationCount(RecurrentKind kind) {
    return kind == RecurrentKind::kRnn ? 1 : kind == RecurrentKind::kGru ? 2 : 3;
}

// One iteration of several directions with the same activations: tensors are [directions, batch,
// ...], matrices [directions, rows, hidden].
class Cell {
  public:
    Cell(const RecurrentOptions& options, size_t direction)
        : options_(options), first_(direction * ActivationCount(options.kind)) {}

    struct State {
        Val h, c;
    };
    // x is the product of the input and w with its bias, [directions, batch, gates * hidden].
    State operator()(Val x, Val r, Val bias, Val peephole, const State& before) const {
        hidden_ = before.h.dim(2);
        switch (options_.kind) {
            case RecurrentKind::kRnn:
                return {Act(0, AddTo(x + Times(before.h, r), bias)), {}};
            case RecurrentKind::kGru:
                return {Gru(x, r, bias, before.h), {}};
            case RecurrentKind::kLstm:
                break;
        }
        return Lstm(AddTo(x + Times(before.h, r), bias), peephole, before);
    }

  private:
    static Val Times(Val h, Val r) { return Contract(h, r, "dbh,dgh->dbg"); }
    static Val AddTo(Val x, Val bias) { return bias ? x + bias : x; }
    Val Act(size_t which, Val x) const {
        if (options_.clip > 0) {
            x = Min(Max(x, -options_.clip), options_.clip);
        }
        return Activate(options_.activations[first_ + which], x);
    }
    // Part i of the gates along the last axis (or of a matrix' rows).
    Val Gate(Val x, int64_t i, int64_t axis = -1) const {
        return x ? SliceAxis(x, axis, hidden_ * i, hidden_) : x;
    }

    Val Gru(Val x, Val r, Val bias, Val h) const {
        const auto gate = [&](int64_t i) {
            return Act(0, AddTo(Gate(x, i) + Times(h, Gate(r, i, 1)), Gate(bias, i)));
        };
        const Val update = gate(0), reset = gate(1);
        const Val r_h = Gate(r, 2, 1), bias_h = Gate(bias, 2);
        const Val inner = options_.linear_before_reset ? reset * AddTo(Times(h, r_h), bias_h)
                                                       : AddTo(Times(reset * h, r_h), bias_h);
        const Val fresh = Act(1, Gate(x, 2) + inner);
        return (1.0 - update) * fresh + update * h;
    }

    State Lstm(Val gates, Val peephole, const State& before) const {
        const auto with = [&](int64_t gate, int64_t peep, Val c) {
            const Val x = Gate(gates, gate);
            return peephole ? x + Gate(peephole, peep) * c : x;
        };
        const Val input = Act(0, with(0, 0, before.c));
        const Val forget = options_.input_forget ? 1.0 - input : Act(0, with(2, 2, before.c));
        const Val c = forget * before.c + input * Act(1, Gate(gates, 3));
        const Val output = Act(0, with(1, 1, c));
        // The last activation is not clipped.
        return {output * Activate(options_.activations[first_ + 2], c), c};
    }

    const RecurrentOptions& options_;
    size_t first_;
    mutable Expr hidden_;
};

struct Directions {
    Val y;  // [time, directions, batch, hidden]
    Val h, c;
};

// Directions `first` to first + count - 1 in one loop. A direction that is reversed goes through
// the same inputs from their end; where a batch is shorter, its state waits for its last input.
Directions RunDirections(const Vals& in,
                         const RecurrentOptions& options,
                         size_t first,
                         size_t count) {
    Builder& b = in[0].builder();
    const int64_t directions = static_cast<int64_t>(count);
    const auto mine = [&](Val v) {
        return v ? SliceAxis(v, 0, static_cast<int64_t>(first), directions) : v;
    };
    const Val x = in[0], w = mine(in[1]), r = mine(in[2]), lengths = in[4];
    const auto for_batches = [](Val v) { return v ? Unsqueeze(v, 1) : v; };
    const Val peephole = for_batches(mine(in[7]));
    const Expr time = x.dim(0), batch = x.dim(1), hidden = r.dim(2);
    const Expr gates = hidden * static_cast<int64_t>(GateCount(options.kind));
    const Val bias = mine(in[3]);
    const Shape columns{gates * directions};
    Val product = w ? Contract(x, Reshape(w, {gates * directions, w.dim(2)}), "tbi,ni->tbn")
                    : SliceAxis(x, 2, gates * static_cast<int64_t>(first), gates * directions);
    Val r_bias = bias ? SliceAxis(bias, 1, gates, gates) : bias;
    if (bias) {
        product = product + Reshape(SliceAxis(bias, 1, 0, gates), columns);
        // Both biases at once, where nothing comes between them.
        if (options.kind != RecurrentKind::kGru) {
            product = product + Reshape(r_bias, columns);
            r_bias = {};
        }
    }
    product = Permute(Reshape(product, {time, batch, directions, gates}), {0, 2, 1, 3});
    const Shape state{directions, batch, hidden};
    const auto initial = [&](Val v) { return v ? mine(v) : b.Full(x.element(), state, 0); };
    const bool lstm = options.kind == RecurrentKind::kLstm;
    Vals carried = {initial(in[5])};
    if (lstm) {
        carried.push_back(initial(in[6]));
    }
    carried.push_back(b.Full(x.element(), {time, directions, batch, hidden}, 0));
    Vals read = {product, r};
    for (const Val& optional : {for_batches(r_bias), peephole, lengths}) {
        if (optional) {
            read.push_back(optional);
        }
    }
    const Cell cell(options, first);
    const Vals results = b.Loop(b.Size(time), carried, read, [&](Builder& body, Vals v) -> Vals {
        size_t next = 1 + carried.size();
        const auto take = [&](bool given) { return given ? v[next++] : Val(); };
        const Val products = v[next++], matrix = v[next++];
        const Val own_bias = take(static_cast<bool>(r_bias));
        const Val own_peephole = take(static_cast<bool>(peephole));
        const Val own_lengths = take(static_cast<bool>(lengths));
        const Cell::State before{v[1], lstm ? v[2] : Val()};
        // Each direction's time, [directions, 1, 1].
        const Shape ones{directions, 1, 1};
        const Val last = body.Size(time) - 1.0, forwards = Reshape(v[0], {1, 1, 1});
        Val now = BroadcastTo(forwards, ones);
        if (options.reversed[first]) {
            now = Reshape(last, {1, 1, 1}) - now;
        } else if (count == 2 && options.reversed[first + 1]) {
            const Val way = Reshape(last - v[0] * 2.0, {1, 1, 1});
            now = now + body.Iota(ElementType::kI64, ones, 0) * way;
        }
        const std::vector<int64_t> sources = {-1, 0, 1, 2};
        const Val x_now = Gather(products, sources, {now}, {directions, batch, gates});
        Cell::State after = cell(x_now, matrix, own_bias, own_peephole, before);
        Val out = after.h;
        if (own_lengths) {
            const Val runs = map::Less(now, Reshape(own_lengths, {1, batch, 1}));
            out = Where(runs, after.h, Like(after.h, 0));
            after.h = Where(runs, after.h, before.h);
            after.c = lstm ? Where(runs, after.c, before.c) : after.c;
        }
        Vals next_values = {after.h};
        if (lstm) {
            next_values.push_back(after.c);
        }
        next_values.push_back(Scatter(v[carried.size()], out, sources, {now}));
        return next_values;
    });
    return {results.back(), results[0], lstm ? results[1] : Val()};
}

// Whether two directions can share a loop.
bool AreAlike(const RecurrentOptions& options) {
    const size_t count = ActivationCount(options.kind);
    return options.reversed.size() == 2 && !options.reversed[0] && options.reversed[1] &&
           std::equal(options.activations.begin(),
                      options.activations.begin() + static_cast<int64_t>(count),
                      options.activations.begin() + static_cast<int64_t>(count),
                      [](const RecurrentActivation& x, const RecurrentActivation& y) {
                          return x.name == y.name && x.alpha == y.alpha && x.beta == y.beta;
                      });
}

}  // namespace

RecurrentResult Recurrent(const RecurrentOperands& o, const RecurrentOptions& options) {
    const size_t directions = options.reversed.size();
    const int64_t gates = static_cast<int64_t>(GateCount(options.kind));
    SizeFacts& sizes = o.x.builder().sizes();
    const bool fits =
        o.x.rank() == 3 && o.r.rank() == 3 &&
        sizes.Equal(o.r.dim(0), static_cast<int64_t>(directions)) &&
        sizes.Equal(o.r.dim(1), o.r.dim(2) * gates) &&
        (o.w ? o.w.rank() == 3 && sizes.Equal(o.w.dim(0), o.r.dim(0)) &&
                   sizes.Equal(o.w.dim(1), o.r.dim(1))
             : sizes.Equal(o.x.dim(2), o.r.dim(1) * static_cast<int64_t>(directions)));
    if (!fits) {
        FailInvalid(fmt::format("the input is {}, the weights are {} and {} for {} directions",
                                o.x.shape().ToString(), (o.w ? o.w : o.r).shape().ToString(),
                                o.r.shape().ToString(), directions));
    }
    if (options.activations.size() != directions * ActivationCount(options.kind)) {
        FailInvalid(fmt::format("it has {} activations, not {}", options.activations.size(),
                                directions * ActivationCount(options.kind)));
    }
    constexpr const char* kNames[] = {"rnn", "gru", "lstm"};
    const bool lstm = options.kind == RecurrentKind::kLstm;
    const Val lengths = o.lengths ? Cast(o.lengths, ElementType::kI64) : o.lengths;
    const Vals results = o.x.builder().Composite(
        kNames[static_cast<size_t>(options.kind)],
        {{"directions", static_cast<int64_t>(directions)}},
        {o.x, o.w, o.r, o.bias, lengths, o.h, o.c, o.peephole},
        [&](Builder&, const Vals& in) -> Vals {
            Vals y, h, c;
            const size_t at_once = AreAlike(options) ? 2 : 1;
            for (size_t d = 0; d < directions; d += at_once) {
                const Directions some = RunDirections(in, options, d, at_once);
                y.push_back(some.y);
                h.push_back(some.h);
                c.push_back(some.c);
            }
            Vals all = {Concat(y, 1), Concat(h, 0)};
            if (lstm) {
                all.push_back(Concat(c, 0));
            }
            return all;
        });
    return {results[0], results[1], lstm ? results[2] : Val()};
}

}  // namespace fornax::graph

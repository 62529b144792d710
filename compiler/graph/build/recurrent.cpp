// LSTM, GRU and the plain recurrent network: the inputs' products at once, then a loop over time.
#include "compiler/graph/build/recurrent.h"

#include <fmt/format.h>

#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/index.h"

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

// One iteration of one direction.
class Cell {
  public:
    Cell(const RecurrentOptions& options, size_t direction)
        : options_(options), first_(direction * ActivationCount(options.kind)) {}

    struct State {
        Val h, c;
    };
    // x is the product of the input and w with w's bias, [batch, gates * hidden].
    State operator()(Val x, Val r, Val bias, Val peephole, const State& before) const {
        hidden_ = before.h.dim(1);
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
    static Val Times(Val h, Val r) { return Contract(h, r, "bh,gh->bg"); }
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
            return Act(0, AddTo(Gate(x, i) + Times(h, Gate(r, i, 0)), Gate(bias, i)));
        };
        const Val update = gate(0), reset = gate(1);
        const Val r_h = Gate(r, 2, 0), bias_h = Gate(bias, 2);
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

// [time, batch, ...] backwards in time, each batch within its length.
Val Backwards(Val x, Val lengths) {
    if (!lengths) {
        return Reverse(x, 0);
    }
    const Shape plane{x.dim(0), x.dim(1)};
    const Val place = x.builder().Iota(ElementType::kI64, plane, 0);
    const Val mirrored = Where(map::Less(place, lengths), lengths - 1.0 - place, place);
    return Gather(x, {-1, 1, 2}, {Unsqueeze(mirrored, 2)}, x.shape());
}

struct Direction {
    Val y;  // [time, batch, hidden]
    Val h, c;
};

Direction RunDirection(const Vals& in, const RecurrentOptions& options, size_t direction) {
    Builder& b = in[0].builder();
    const int64_t d = static_cast<int64_t>(direction);
    const auto mine = [&](Val v) { return v ? Select(v, 0, d) : v; };
    const Val w = mine(in[1]), r = mine(in[2]), peephole = mine(in[7]), lengths = in[4];
    const Expr hidden = r.dim(1), gates = hidden * static_cast<int64_t>(GateCount(options.kind));
    const Val bias = mine(in[3]);
    const Val x = options.reversed[direction] ? Backwards(in[0], lengths) : in[0];
    Val product = Contract(x, w, "tbi,gi->tbg");
    if (bias) {
        product = product + SliceAxis(bias, 0, 0, gates);
    }
    const Shape state{x.dim(1), hidden};
    const auto initial = [&](Val v) { return v ? mine(v) : b.Full(x.element(), state, 0); };
    const bool lstm = options.kind == RecurrentKind::kLstm;
    Vals carried = {initial(in[5])};
    if (lstm) {
        carried.push_back(initial(in[6]));
    }
    carried.push_back(b.Full(x.element(), {x.dim(0), x.dim(1), hidden}, 0));
    const Val r_bias = bias ? SliceAxis(bias, 0, gates, gates) : bias;
    Vals read = {product, r};
    for (const Val& optional : {r_bias, peephole, lengths}) {
        if (optional) {
            read.push_back(optional);
        }
    }
    const Cell cell(options, direction);
    const Vals results = b.Loop(b.Size(x.dim(0)), carried, read, [&](Builder&, Vals v) -> Vals {
        size_t next = 1 + carried.size();
        const auto take = [&](bool given) { return given ? v[next++] : Val(); };
        const Val products = v[next++], matrix = v[next++];
        const Val own_bias = take(static_cast<bool>(r_bias));
        const Val own_peephole = take(static_cast<bool>(peephole));
        const Val own_lengths = take(static_cast<bool>(lengths));
        const Cell::State before{v[1], lstm ? v[2] : Val()};
        Cell::State after =
            cell(TakeOne(products, v[0], 0), matrix, own_bias, own_peephole, before);
        Val out = after.h;
        if (own_lengths) {
            // Behind its length a batch keeps its state and gives 0.
            const Val runs = Unsqueeze(map::Less(v[0], own_lengths), 1);
            out = Where(runs, after.h, Like(after.h, 0));
            after.h = Where(runs, after.h, before.h);
            after.c = lstm ? Where(runs, after.c, before.c) : after.c;
        }
        Vals next_values = {after.h};
        if (lstm) {
            next_values.push_back(after.c);
        }
        next_values.push_back(PutOne(v[carried.size()], v[0], out, 0));
        return next_values;
    });
    Val y = results.back();
    y = options.reversed[direction] ? Backwards(y, lengths) : y;
    return {y, results[0], lstm ? results[1] : Val()};
}

}  // namespace

RecurrentResult Recurrent(const RecurrentOperands& o, const RecurrentOptions& options) {
    const size_t directions = options.reversed.size();
    const int64_t gates = static_cast<int64_t>(GateCount(options.kind));
    SizeFacts& sizes = o.x.builder().sizes();
    if (o.x.rank() != 3 || o.w.rank() != 3 || o.r.rank() != 3 ||
        !sizes.Equal(o.w.dim(0), static_cast<int64_t>(directions)) ||
        !sizes.Equal(o.w.dim(1), o.r.dim(2) * gates) || !sizes.Equal(o.r.dim(1), o.w.dim(1))) {
        FailInvalid(fmt::format("the input is {}, the weights are {} and {} for {} directions",
                                o.x.shape().ToString(), o.w.shape().ToString(),
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
        {o.x, o.w, o.r, o.bias, lengths, o.h, o.c, o.peephole}, [&](Builder&, Vals in) -> Vals {
            Vals y, h, c;
            for (size_t d = 0; d < directions; ++d) {
                const Direction direction = RunDirection(in, options, d);
                y.push_back(direction.y);
                h.push_back(direction.h);
                c.push_back(direction.c);
            }
            Vals all = {Stack(y, 1), Stack(h, 0)};
            if (lstm) {
                all.push_back(Stack(c, 0));
            }
            return all;
        });
    return {results[0], results[1], lstm ? results[2] : Val()};
}

}  // namespace fornax::graph

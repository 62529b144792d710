// LSTM, GRU and the plain recurrent network, as composites around a loop.
#pragma once

#include <string>

#include "compiler/graph/build/builder.h"

namespace fornax::graph {

enum class RecurrentKind : uint8_t { kRnn, kGru, kLstm };

struct RecurrentActivation {
    std::string name;  // as ONNX calls them, in small letters
    double alpha = 0;
    double beta = 0;
};

struct RecurrentOptions {
    RecurrentKind kind = RecurrentKind::kLstm;
    std::vector<bool> reversed;  // one entry a direction
    // For each direction those of the kind: rnn f; gru f, g; lstm f, g, h.
    std::vector<RecurrentActivation> activations;
    double clip = 0;                   // of what enters activations; 0: none
    bool linear_before_reset = false;  // gru
    bool input_forget = false;         // lstm
};

// Gates are in ONNX's order: rnn i; gru z r h; lstm i o f c. What is optional may be nothing.
struct RecurrentOperands {
    Val x;        // [time, batch, inputs]; without w its product, [.., directions * gates * hidden]
    Val w;        // [directions, gates * hidden, inputs]
    Val r;        // [directions, gates * hidden, hidden]
    Val bias;     // [directions, 2 * gates * hidden], of w and of r; optional
    Val lengths;  // [batch]: the steps that count; optional
    Val h;        // [directions, batch, hidden]; optional
    Val c;        // the same, of lstm; optional
    Val peephole;  // [directions, 3 * hidden], of lstm, of i, o and f; optional
};

struct RecurrentResult {
    Val y;  // [time, directions, batch, hidden]
    Val h;  // [directions, batch, hidden]
    Val c;  // of lstm
};

RecurrentResult Recurrent(const RecurrentOperands& operands, const RecurrentOptions& options);

// --- Weights of bytes ---

// [directions, inputs, gates * hidden], one scale and zero point a direction or a column.
struct QuantisedMatrices {
    Val codes, scale;
    Val zero;  // optional
};

// An LSTM, whose `operands` lack w and r. The input is quantised as a whole and multiplied by the
// bytes of w, if these are constant; r becomes f32 first.
RecurrentResult QuantisedLstm(const QuantisedMatrices& w,
                              const QuantisedMatrices& r,
                              RecurrentOperands operands,
                              const RecurrentOptions& options);

}  // namespace fornax::graph

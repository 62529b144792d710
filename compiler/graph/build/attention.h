// Attention and what goes with it.
#pragma once

#include <functional>

#include "compiler/graph/build/builder.h"

namespace fornax::graph {

struct AttentionOperands {
    Val query;    // [batch, heads, queries, size]
    Val key;      // [batch, key heads, keys, size]; heads is a multiple of key heads
    Val value;    // [batch, key heads, keys, value size]
    Val mask;     // bools (true: attend) or numbers that are added, broadcast to
                  // [batch, heads, queries, keys]; or nothing
    Val lengths;  // i64 [batch]: keys from there on do not count; or nothing
    Val offset;   // i64, [] or [batch]: the key's position of query 0; or nothing for 0
};

struct AttentionOptions {
    double scale = 1;
    double softcap = 0;  // 0: none
    bool causal = false;
    // How many keys before and behind its own position a query sees; -1: all.
    int64_t left_window = -1;
    int64_t right_window = -1;
    // The type that the softmax is computed in.
    ElementType softmax = ElementType::kF32;
    // Applied to the scores and to the probabilities [batch, heads, queries, keys].
    std::function<Val(Val)> score_function;
    std::function<Val(Val)> probability_function;
};

// What of the scores is wanted beside the result.
enum class Scores : uint8_t { kNone, kProducts, kCapped, kMasked, kProbabilities };

struct AttentionResult {
    Val y;       // [batch, heads, queries, value size]
    Val scores;  // [batch, heads, queries, keys] or nothing
};

// A composite, unless the options have functions.
AttentionResult Attention(const AttentionOperands& operands,
                          const AttentionOptions& options,
                          Scores scores);

// Rotates the first `rotated` of the last dimension of x [batch, heads, positions, size] by angles
// whose cosines and sines are [batch or 1, positions, rotated / 2]. The pairs are neighbours if
// `interleaved`, else of the two halves.
Val RotaryEmbedding(Val x, Val cosine, Val sine, const Expr& rotated, bool interleaved);

struct LinearAttentionOperands {
    Val query;  // [batch, heads, time, key size]
    Val key;    // [batch, key heads, time, key size]
    Val value;  // [batch, key heads, time, value size]
    Val state;  // [batch, key heads, key size, value size]
    Val decay;  // [batch, key heads, time, key size or 1] or nothing: e^decay multiplies the state
    Val beta;   // [batch, key heads or 1, time, 1] or nothing: the delta rule
};
struct LinearAttentionResult {
    Val y;      // [batch, heads, time, value size]
    Val state;  // at the end
};
// Recurrent, in f32.
LinearAttentionResult LinearAttention(const LinearAttentionOperands& operands, double scale);

}  // namespace fornax::graph

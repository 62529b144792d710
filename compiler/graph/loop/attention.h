// Kernels that are an attention: what Mapping::kAttention asks for.
//
// For each row (a batch and a query m) there are scores t(key), any function of a sum of products
// query(depth) * key(depth); the result is the sum over the keys of
//
//     exp(t(key) - max of t) / (sum of exp(t - max of t)) * value(key, n)
//
// Said like this the scores are computed three times at each point; recognised as a whole they are
// computed once.
#pragma once

#include <optional>
#include <vector>

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::loop {

struct Attention {
    ScalarId sum;         // over `keys` of the probability times `value`
    ScalarId value;       // at a key and n
    ScalarId score;       // at a key and m
    ScalarId product;     // what the score is a function of: a sum over `depth`
    ScalarId query, key;  // the operands of the multiplication in it
    ScalarId none;        // a bool of the row: all its probabilities are 0; or not valid
    Loop keys = {Symbol("$keys"), 1};
    // Parallel loops in their order: those that keys or values and the probability depend on, the
    // probability alone, the values alone. The loops of `product`.
    std::vector<Loop> batch, m, n, depth;
};

// The attention of a kernel in f32 whose stores need no other reduction and that has no sequential
// loop. Its depth and n are known and not large.
std::optional<Attention> FindAttention(const Kernel& kernel, const Scope& scope);

}  // namespace fornax::graph::loop

// What a kernel computes and moves through memory, as expressions of its sizes: for reports, to
// tell how near to a machine's limits it runs, and for the cost records of described machines.
#pragma once

#include <vector>

#include "compiler/graph/ir/expr.h"
#include "compiler/graph/loop/kernel.h"

namespace fornax::graph::loop {

struct KernelCosts {
    Expr operations;  // each scalar function, comparison and sum of a reduction is one
    // As if what is read or stored went through memory once: a buffer's bytes, or those of so many
    // elements as its loads or stores have different indices, if that is less (rows that are
    // gathered from a table, a row that is written into a cache).
    Expr bytes_read;
    Expr bytes_written;
};

// The kernel has passed Verify().
KernelCosts EstimateCosts(const Kernel& kernel);

// A sum of products over k for each of batch x m x n results.
struct ProductWork {
    Expr batch, m, n, k;
    // The narrowest types that the operands have on their way from memory.
    ElementType a = ElementType::kF32, b = ElementType::kF32;
    // The bytes of the buffers that each operand alone is loaded from, as in KernelCosts.
    Expr a_bytes, b_bytes;
};

// A buffer, read or written, as in KernelCosts.
struct AccessWork {
    BufferId buffer;
    bool writes = false;
    bool by_data = false;  // at indices that come from memory: a gather or scatter
    Expr bytes;
};

// The same costs by kind. What `products` count is in no other member.
struct KernelWork {
    std::vector<ProductWork> products;
    Expr simple;    // additions, comparisons, casts of functions and sums, ...
    Expr division;  // divisions and remainders
    Expr special;   // roots, exponentials, ...
    std::vector<AccessWork> accesses;
};

// The kernel has passed Verify(). A kernel with one product (product.h) or an attention has
// products, unless each result of a batch is a row or a column only, which no array of multipliers
// is filled by.
KernelWork WorkOf(const Kernel& kernel);

}  // namespace fornax::graph::loop

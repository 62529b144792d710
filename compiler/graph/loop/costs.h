// What a kernel computes and moves through memory, as expressions of its sizes: for reports, and to
// tell how near to a machine's limits it runs.
#pragma once

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

}  // namespace fornax::graph::loop

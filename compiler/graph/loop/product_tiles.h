// Which operands of a product lie in memory as loads of matrices want them.
#pragma once

#include <optional>
#include <span>

#include "compiler/graph/loop/kernel.h"

namespace fornax::graph::loop {

// How an operand, as rows (or columns) by k, is addressed: element (row, k) of a matrix of 16 x 16
// whose first row and k are `row` and `depth` lies at `offset` plus its place in the matrix, by
// `stride` in one direction and 1 in the other.
struct TileAccess {
    BufferId buffer;
    Symbol row{"$row"};
    Symbol depth{"$depth"};
    Expr offset;              // over `row`, `depth` and the batch loops
    Expr stride;              // between rows, or between ks
    bool unit_depth = false;  // neighbours in k lie side by side; else neighbours in rows
    // Panels only: a row must be a multiple of 16, and memory has so many rows.
    std::optional<Expr> padded_rows;
};

// Nullopt unless the operand is a load of f32 without conditions whose matrices are regular.
std::optional<TileAccess> FindTileAccess(const Kernel& kernel,
                                         const Domain& domain,
                                         ScalarId operand,
                                         std::span<const Loop> rows,
                                         std::span<const Loop> depth);

}  // namespace fornax::graph::loop

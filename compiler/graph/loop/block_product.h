// Sums over blocks of an integer product times scales: what products of quantised activations with
// quantised weights are, where each block along k has scales of its own (emit_blocks.cpp).
//
//     sum over blocks of f(sum over k in the block of a * b)
//
// f is any chain of scalars: scales of rows, scales and least values of columns.
#pragma once

#include <optional>
#include <vector>

#include "compiler/graph/loop/byte_product.h"
#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/product.h"

namespace fornax::graph::loop {

// The most words of four bytes that a block has.
inline constexpr int64_t kMostBlockWords = 16;
// The rows of a tile, for all of which an element of the columns is computed once.
inline constexpr int64_t kRowsOfBlocks = 12;

struct BlockProduct {
    ScalarId sum;              // over the blocks
    std::vector<Loop> blocks;  // its loops
    ScalarId term;             // f, of a block
    Product product;           // the integer sum in it
    ByteProduct bytes;
};

// Nullopt unless the kernel's reductions are such two sums, and all accesses of the operands are
// inside of their buffers.
std::optional<BlockProduct> FindBlockProduct(const Kernel& kernel, const Scope& scope);

}  // namespace fornax::graph::loop

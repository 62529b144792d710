// Products of bytes whose operands lie as words of four along k (emit_bytes.cpp).
#pragma once

#include <optional>

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/product.h"

namespace fornax::graph::loop {

struct ByteProduct {
    // The first byte of a word: what the operands load with 0 for the last loop of k. Only a may
    // be outside of its buffer, with all bytes of a word at once.
    Load a, b;
    bool a_signed = false, b_signed = false;
    uint32_t otherwise = 0;  // the word of a that is outside
};

// Nullopt unless the sum is of i32, the operands are bytes from memory, and the last loop of k has
// four points that are words of both.
std::optional<ByteProduct> FindByteProduct(const Kernel& kernel,
                                           const Scope& scope,
                                           const Product& product);

}  // namespace fornax::graph::loop

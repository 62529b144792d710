// Products of bytes or bf16 whose operands lie as words of 32 bits along k (emit_bytes.cpp).
#pragma once

#include <optional>

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/product.h"

namespace fornax::graph::loop {

struct ByteProduct {
    // The first element of a word: what the operands load with 0 for the last loop of k. Only a may
    // be outside of its buffer, with all elements of a word at once.
    Load a, b;
    bool floats = false;  // words of two bf16; else of four bytes
    bool a_signed = false, b_signed = false;
    uint32_t otherwise = 0;  // the word of a that is outside
    // An element of b is (byte >> b_shift) & b_mask: several of fewer bits lie in one byte. The
    // shift is the same for a whole word, and what it brings from the next byte is masked.
    Expr b_shift = 0;
    uint32_t b_mask = 0xFF;
};

// Nullopt unless the sum is of i32 and the operands are bytes from memory, or the sum is of f32 and
// they are bf16 from memory, and the last loop of k has the points of one word of both.
std::optional<ByteProduct> FindByteProduct(const Kernel& kernel,
                                           const Scope& scope,
                                           const Product& product);

}  // namespace fornax::graph::loop

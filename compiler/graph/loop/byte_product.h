// Products of bytes or bf16 whose operands lie as words of 32 bits along k (emit_bytes.cpp).
#pragma once

#include <optional>
#include <vector>

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/product.h"

namespace fornax::graph::loop {

struct ByteProduct {
    // Bits of an element of b: ((byte >> shift) & mask) << place, where the byte is one of a word
    // of four. The shift is the same for the whole word; what it brings from the next byte is
    // masked. Several elements of fewer bits so lie in one byte.
    struct Bits {
        Load word;  // its first byte
        Expr shift = 0;
        uint32_t mask = 0xFF;
        uint32_t place = 0;
    };
    // The first element of a word: what the operand loads with 0 for the last loop of k. It may be
    // outside of its buffer, with all elements of the word at once.
    Load a;
    std::vector<Bits> b;  // an element is all of these together
    bool floats = false;  // words of two bf16; else of four bytes
    bool a_signed = false, b_signed = false;
    uint32_t otherwise = 0;  // the word of a that is outside
};

// Nullopt unless the sum is of i32 and the operands are bytes from memory, or the sum is of f32 and
// they are bf16 from memory, and the last loop of k has the points of one word of both.
std::optional<ByteProduct> FindByteProduct(const Kernel& kernel,
                                           const Scope& scope,
                                           const Product& product);

}  // namespace fornax::graph::loop

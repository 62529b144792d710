// Pieces of quantised blocks in terms of the graph IR. Blocks are bytes [rows, blocks, bytes].
#pragma once

#include <span>

#include "compiler/frontends/ggml/node.h"

namespace fornax::ggml_frontend {

// `count` bytes of each block from `start` on.
graph::Val BytesAt(graph::Val blocks, int64_t start, int64_t count);
// The f16 at byte `start` of each block as f32 [rows, blocks, 1].
graph::Val HalfAt(graph::Val blocks, int64_t start);
// The u16 words from byte `start` on, as i32 [rows, blocks, count]; u32 words as u32.
graph::Val WordsAt(graph::Val blocks, int64_t start, int64_t count);
graph::Val LongWordsAt(graph::Val blocks, int64_t start, int64_t count);
// `count` bits of integers from bit `first` on, the same for all or as many as `first` has
// elements.
graph::Val Bits(graph::Val value, int64_t first, int64_t count);
graph::Val Bits(graph::Val value, graph::Val first, int64_t count);
// The halves of 16 bytes: the low ones are elements 0 to 15, the high ones 16 to 31.
graph::Val Nibbles(graph::Val bytes);
graph::Val Number(graph::Val integers);
// The elements of a table at the places that integers name.
graph::Val LookUp(std::span<const float> table, graph::Val places);
// [rows, blocks] and further dimensions, like the bytes'.
graph::Shape BlockShape(graph::Val blocks, std::initializer_list<int64_t> dims);
// To a shape of [rows, blocks, ..] and then repeated to another.
graph::Val Spread(graph::Val value,
                  std::initializer_list<int64_t> dims,
                  std::initializer_list<int64_t> to);

// By family, f32 [rows, blocks, elements]. Nothing for another family's blocks.
graph::Val DecodeScaled(graph::Val blocks, Blocks kind);  // decode.cpp: one scale a block
graph::Val DecodeGroups(graph::Val blocks, Blocks kind);  // decode_groups.cpp: groups in blocks
graph::Val DecodeCodebook(graph::Val blocks,
                          Blocks kind);  // decode_codebook.cpp: vectors of tables

// The 16 numbers of the types iq4.
std::span<const float> UnevenNumbers();

}  // namespace fornax::ggml_frontend

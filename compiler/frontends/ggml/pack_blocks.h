// Blocks of quantised types taken apart, one column's at a time, as packs have them.
#pragma once

#include <cstdint>

#include "compiler/frontends/ggml/graph.h"

namespace fornax::ggml_frontend {

// Elements of the largest block.
inline constexpr int64_t kMostElements = 256;

// A block of a type: the bytes of its blocks in the pack one after the other, and what these have
// beside, as it is in the pack.
struct Block {
    uint8_t bytes[kMostElements] = {};
    uint8_t high[kMostElements / 4] = {};
    uint8_t scales[32] = {}, least[16] = {};
    uint8_t scale_unit[2] = {}, least_unit[2] = {};
};

// `kind` has a PackForm with bits.
void TakeBlock(Blocks kind, const uint8_t* block, Block& to);

}  // namespace fornax::ggml_frontend

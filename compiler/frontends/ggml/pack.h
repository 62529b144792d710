// Weights in the layout that products read fastest: panels of 16 columns, which lie side by side
// for each place along the columns. The host packs them once; graphs get the panels as inputs.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "compiler/frontends/ggml/graph.h"

namespace fornax::ggml_frontend {

// What of a storage an input of a graph is: all of it as it lies, or what a pack of it holds.
enum class Part : uint8_t {
    kWhole,
    // Bytes [panels, blocks, words of a block, 16, 4], of 4 bits with the block's second half in
    // the high halves; of floats their type [panels, k, 16].
    kCodes,
    kScales,  // f16 [panels, blocks of a column, 16]
    kLeast,   // the same
};

// How a type is packed. Types without bits are floats, which have codes alone.
struct PackForm {
    int64_t bits = 0;   // of an element
    int64_t block = 0;  // elements with one scale
    // An element is (code - zero) * scale, or code * scale + least.
    double zero = 0;
    bool has_least = false;
};

// Nothing for types that are not packed.
std::optional<PackForm> PackFormOf(const TypeInfo& type);

// Whether weights of these sizes are worth a pack: large ones of whole blocks.
bool IsPacked(const TypeInfo& type, int64_t k, int64_t n);

// The bytes of a part of a pack of n columns with k elements each.
uint64_t PackBytes(const TypeInfo& type, Part part, int64_t k, int64_t n);

// Where the parts go; null for parts that the type does not have. Columns from n on stay as they
// are.
struct PackTarget {
    uint8_t* codes = nullptr;
    uint16_t* scales = nullptr;  // f16
    uint16_t* least = nullptr;
};
// Packs the n rows of k elements each that a tensor [k, n] has in memory, on all processors. Fails
// if a scale is beyond what f16 holds.
Status Pack(const TypeInfo& type, const uint8_t* rows, int64_t k, int64_t n, PackTarget to);

}  // namespace fornax::ggml_frontend

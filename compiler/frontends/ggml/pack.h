// Weights in the layout that products read fastest: panels of 16 columns, which lie side by side
// for each place along the columns. The host packs them once; graphs get the panels as inputs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "compiler/frontends/ggml/graph.h"

namespace fornax::ggml_frontend {

// What of a storage an input of a graph is: all of it as it lies, or what a pack of it holds.
enum class Part : uint8_t {
    kWhole,
    // Bytes [panels, blocks, words of a block, 16, 4], of 4 bits with the block's second half in
    // the high halves, of 2 bits with its quarters from the lowest bits on; of floats their type
    // [panels, k, 16].
    kCodes,
    kScales,      // [panels, blocks of a column, 16], of f16 or, in units, of bytes
    kLeast,       // the same
    kScaleUnits,  // f16 [panels, groups of a column, 16]
    kLeastUnits,  // the same
    // Bits of the codes above those of kCodes, [panels, blocks, 1, 16, 4]: those of each next four
    // elements of the block lie above those of the last four.
    kHighCodes,
};
inline constexpr size_t kParts = 7;

// How a type is packed. Types without bits are floats, which have codes alone.
struct PackForm {
    int64_t bits = 0;       // of an element, in kCodes
    int64_t high_bits = 0;  // above them, in kHighCodes
    int64_t block = 0;      // elements with one scale
    // An element is (code - zero) * scale, or code * scale + least.
    double zero = 0;
    bool has_least = false;
    // If not 0: scales and least values are bytes times a unit, which so many elements share.
    int64_t group = 0;
    bool signed_scales = false;  // of the bytes
};

// Nothing for types that are not packed.
std::optional<PackForm> PackFormOf(const TypeInfo& type);

// Whether weights of these sizes are worth a pack: large ones of whole blocks.
bool IsPacked(const TypeInfo& type, int64_t k, int64_t n);

// The bytes of a part of a pack of n columns with k elements each.
uint64_t PackBytes(const TypeInfo& type, Part part, int64_t k, int64_t n);

// Where the parts go, by Part; null for parts that the type does not have. Columns from n on may
// hold anything.
using PackTarget = std::array<uint8_t*, kParts>;
// Packs the n rows of k elements each that a tensor [k, n] has in memory, on all processors.
void Pack(const TypeInfo& type, const uint8_t* rows, int64_t k, int64_t n, const PackTarget& to);

}  // namespace fornax::ggml_frontend

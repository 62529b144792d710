// A computation graph of ggml as this frontend reads it: plain data, without ggml's structures, so
// that neither their layout nor the numbers of their enumerations matter here.
//
// Tensors name their operators and types as ggml's own functions print them ("MUL_MAT", "q4_0").
// Sizes are in ggml's order, the innermost first.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/ir/element_type.h"

namespace fornax::ggml_frontend {

inline constexpr size_t kDims = 4;
inline constexpr size_t kParameters = 16;

// How the bits of a quantised block become numbers; decode.cpp has one function each.
enum class Blocks : uint8_t {
    kNone,
    kQ1_0,
    kQ2_0,
    kQ4_0,
    kQ4_1,
    kQ5_0,
    kQ5_1,
    kQ8_0,
    kMxFp4,
    kNvFp4,
    kQ2K,
    kQ3K,
    kQ4K,
    kQ5K,
    kQ6K,
    kTq1_0,
    kTq2_0,
    kIq1S,
    kIq1M,
    kIq2Xxs,
    kIq2Xs,
    kIq2S,
    kIq3Xxs,
    kIq3S,
    kIq4Nl,
    kIq4Xs,
};

struct TypeInfo {
    std::string_view name;
    graph::ElementType element;  // kU8 for types of blocks
    int64_t block_elements = 1;
    int64_t block_bytes = 1;
    Blocks blocks = Blocks::kNone;

    bool is_quantised() const { return blocks != Blocks::kNone; }
};

// The type that ggml calls so, or null if this frontend does not know it.
const TypeInfo* FindType(std::string_view name);

struct Tensor {
    std::string name;  // for messages
    // "ADD", "NONE" of what no operator computes; unary operators are "UNARY_" and their name,
    // gated ones "GLU_" and theirs.
    std::string operation = "NONE";
    const TypeInfo* type = nullptr;       // null: of a type that FindType() does not know
    std::array<int64_t, kDims> ne = {};   // elements
    std::array<uint64_t, kDims> nb = {};  // strides in bytes
    std::array<int32_t, kParameters> parameters = {};
    std::vector<int32_t> sources;  // indices of tensors; -1 for one that is left out
    uint32_t storage = 0;
    uint64_t offset = 0;  // of the first element in the storage, in bytes

    int64_t count() const { return ne[0] * ne[1] * ne[2] * ne[3]; }
};

// The memory of a tensor that is no view, and of all views of it.
struct Storage {
    const TypeInfo* type = nullptr;  // of the tensor that is no view
    std::array<int64_t, kDims> ne = {};
    // What the storage holds when the graph has run must be in memory. No for what a later node of
    // the graph reuses the memory of.
    bool is_kept = true;
    // Shares bytes with another storage of the graph: what is written to it lies elsewhere first.
    bool is_shared = false;
    // Weights, which stay as they are from run to run: products may read a packed copy.
    bool is_weights = false;
};

// The sources of a node that its operator writes, beside its result: those of the optimiser's step.
std::vector<int32_t> WrittenSources(const Tensor& node);

struct Graph {
    std::vector<Tensor> tensors;
    std::vector<uint32_t> nodes;  // the tensors that are computed, in order
    std::vector<Storage> storages;
    // Products read the storages of MatricesInPlace() where they lie, not packs of them.
    bool in_place = false;
};

}  // namespace fornax::ggml_frontend

// The types of ggml's tensors.
#include <algorithm>

#include "compiler/frontends/ggml/graph.h"

namespace fornax::ggml_frontend {
namespace {

using graph::ElementType;

constexpr TypeInfo kTypes[] = {
    {"f32", ElementType::kF32, 1, 4},
    {"f16", ElementType::kF16, 1, 2},
    {"bf16", ElementType::kBF16, 1, 2},
    {"f64", ElementType::kF64, 1, 8},
    {"i8", ElementType::kI8, 1, 1},
    {"i16", ElementType::kI16, 1, 2},
    {"i32", ElementType::kI32, 1, 4},
    {"i64", ElementType::kI64, 1, 8},
    {"q4_0", ElementType::kU8, 32, 18, Blocks::kQ4_0},
    {"q4_1", ElementType::kU8, 32, 20, Blocks::kQ4_1},
    {"q5_0", ElementType::kU8, 32, 22, Blocks::kQ5_0},
    {"q5_1", ElementType::kU8, 32, 24, Blocks::kQ5_1},
    {"q8_0", ElementType::kU8, 32, 34, Blocks::kQ8_0},
    {"q4_K", ElementType::kU8, 256, 144, Blocks::kQ4K},
    {"q6_K", ElementType::kU8, 256, 210, Blocks::kQ6K},
};

}  // namespace

const TypeInfo* FindType(std::string_view name) {
    const auto* const found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                           [&](const TypeInfo& type) { return type.name == name; });
    return found == std::end(kTypes) ? nullptr : found;
}

}  // namespace fornax::ggml_frontend

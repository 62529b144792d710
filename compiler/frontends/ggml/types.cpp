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
    {"q1_0", ElementType::kU8, 128, 18, Blocks::kQ1_0},
    {"q2_0", ElementType::kU8, 64, 18, Blocks::kQ2_0},
    {"mxfp4", ElementType::kU8, 32, 17, Blocks::kMxFp4},
    {"nvfp4", ElementType::kU8, 64, 36, Blocks::kNvFp4},
    {"q2_K", ElementType::kU8, 256, 84, Blocks::kQ2K},
    {"q3_K", ElementType::kU8, 256, 110, Blocks::kQ3K},
    {"q4_K", ElementType::kU8, 256, 144, Blocks::kQ4K},
    {"q5_K", ElementType::kU8, 256, 176, Blocks::kQ5K},
    {"q6_K", ElementType::kU8, 256, 210, Blocks::kQ6K},
    {"tq1_0", ElementType::kU8, 256, 54, Blocks::kTq1_0},
    {"tq2_0", ElementType::kU8, 256, 66, Blocks::kTq2_0},
    {"iq1_s", ElementType::kU8, 256, 50, Blocks::kIq1S},
    {"iq1_m", ElementType::kU8, 256, 56, Blocks::kIq1M},
    {"iq2_xxs", ElementType::kU8, 256, 66, Blocks::kIq2Xxs},
    {"iq2_xs", ElementType::kU8, 256, 74, Blocks::kIq2Xs},
    {"iq2_s", ElementType::kU8, 256, 82, Blocks::kIq2S},
    {"iq3_xxs", ElementType::kU8, 256, 98, Blocks::kIq3Xxs},
    {"iq3_s", ElementType::kU8, 256, 110, Blocks::kIq3S},
    {"iq4_nl", ElementType::kU8, 32, 18, Blocks::kIq4Nl},
    {"iq4_xs", ElementType::kU8, 256, 136, Blocks::kIq4Xs},
};

}  // namespace

const TypeInfo* FindType(std::string_view name) {
    const auto* const found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                           [&](const TypeInfo& type) { return type.name == name; });
    return found == std::end(kTypes) ? nullptr : found;
}

std::vector<int32_t> WrittenSources(const Tensor& node) {
    std::vector<int32_t> written;
    if (node.operation == "OPT_STEP_ADAMW") {
        for (const size_t moment : {size_t{2}, size_t{3}}) {
            if (moment < node.sources.size() && node.sources[moment] >= 0) {
                written.push_back(node.sources[moment]);
            }
        }
    }
    return written;
}

}  // namespace fornax::ggml_frontend

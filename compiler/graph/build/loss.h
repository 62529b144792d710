// Losses.
#pragma once

#include <optional>

#include "compiler/graph/build/builder.h"

namespace fornax::graph {

enum class LossReduction : uint8_t { kNone, kMean, kSum };

struct LossOptions {
    LossReduction reduction = LossReduction::kMean;
    std::optional<int64_t> ignored;  // the target that counts nothing
};

// x is [batch, classes, ...], target [batch, ...], weight [classes] or nothing. The mean is that by
// weights.
Val NegativeLogLikelihood(Val x, Val target, Val weight, const LossOptions& options);

}  // namespace fornax::graph

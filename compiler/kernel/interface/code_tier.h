// What code is made for. Both tiers compute the same, to the last bit.
#pragma once

#include <cstdint>

namespace fornax::kernel {

enum class CodeTier : uint8_t {
    kBaseline,   // soon: several times faster to make, several times slower to run
    kOptimized,  // to run fast
};

// The matrix multiply-accumulates whose iterations a target gains by joining: in tile registers
// all, in vector registers those of bfloat16 if it multiplies pairs of them
// (docs/kernel-decisions.md).
enum class JoinedMmas : uint8_t { kNone, kBFloat16, kAll };

}  // namespace fornax::kernel

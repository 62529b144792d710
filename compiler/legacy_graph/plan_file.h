// Plans as bytes: what `fornax compile` writes and the plan cache holds.
//
// The form is a header (magic, version, size, checksum) and a FlatBuffer of plan.fbs. It names
// kernels and the digest of the kernel library instead of holding code, so a file can choose what
// runs only among Fornax's own kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "compiler/legacy_graph/plan.h"

namespace fornax::legacy_graph {

inline constexpr uint32_t kPlanFormatVersion = 1;

// Fails only for plans beyond FlatBuffers' limit of 2 GiB.
Result<std::vector<std::byte>> SerializePlan(const Plan& plan);

// Reads untrusted bytes. Fails with kDataLoss and a sentence when they are not a whole, undamaged
// plan of this version made with these kernels, or the plan is not valid (ValidatePlan).
Result<Plan> ParsePlan(std::span<const std::byte> bytes);

// Whether the bytes begin as a plan file does.
bool LooksLikePlan(std::span<const std::byte> bytes);

}  // namespace fornax::legacy_graph

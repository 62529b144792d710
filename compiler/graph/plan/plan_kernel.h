// What the rest of the compiler and the runtime ask of a plan's kernel, whatever its kind: to add a
// kind, add it to PlanKernel and to plan_kernel.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::graph {

const std::string& NameOf(const PlanKernel& kernel);
// Its storage buffers 0, 1, ... of set 0.
std::span<const loop::Buffer> BuffersOf(const PlanKernel& kernel);
// The sizes that it uses, and the values that they may have.
const Ranges& SizesOf(const PlanKernel& kernel);

// For kernels from files; the error is a sentence.
Status VerifyKernel(const PlanKernel& kernel);

// A kernel as text, and the same kernel from it; its first word is its kind. What is parsed passes
// VerifyKernel().
std::string ToText(const PlanKernel& kernel);
Result<PlanKernel> ParsePlanKernel(std::string_view text);

}  // namespace fornax::graph

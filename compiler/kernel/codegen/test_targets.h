// For tests: the processors that this machine can run code for.
#pragma once

#include <string>
#include <vector>

#include "compiler/kernel/codegen/target.h"

namespace fornax::kernel {

// As FORNAX_CPU names them: "" for the machine's own, then, as far as it has them, x86-64-v4
// (512-bit without arithmetic of f16, matrices or dot products), v3 (256-bit) and v2 (128-bit).
const std::vector<std::string>& TestCpus();
const std::vector<TargetInfo>& TestTargets();

}  // namespace fornax::kernel

// The text form of kernels.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel::ir {

// The text form (grammar: print.cpp); PrintKernel(ParseKernel(t)) == t for printed text. Values are
// renumbered in order. The words of `origin` are not part of it. Text given to ParseKernel is
// untrusted: errors name the line.
std::string PrintKernel(const Kernel& kernel);
Result<Kernel> ParseKernel(std::string_view text);

}  // namespace fornax::kernel::ir

// Broken modules through the whole kernel compiler: a valid module's words are changed, and what
// the reader still accepts must be compiled or refused, within bounded time and memory. Nothing of
// it is ever run: what such a module does is undefined.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/kernel/codegen/jit_kernel.h"

namespace fornax::kernel::fuzz {

enum class Outcome : uint8_t { kRefusedByReader, kRefusedByCompiler, kCompiled };

// Every binding of sets 0 and 1 that a module is likely to name is in the layout. `message` takes
// the words of what refuses. Ends the process where a pass leaves a kernel that Verify refuses, or
// LLVM IR that is not valid: these are errors of the compiler.
Outcome CompileHostile(const std::vector<uint32_t>& module,
                       const TargetInfo& target,
                       llvm::TargetMachine& machine,
                       std::string& message);

}  // namespace fornax::kernel::fuzz

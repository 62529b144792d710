// FORNAX_KERNEL=interpret: kernels that are interpreted instead of compiled.
#pragma once

#include <memory>

#include "compiler/kernel/backend/backend.h"
#include "compiler/kernel/kernel_compiler.h"

namespace fornax::kernel {

// Stores nothing and finds nothing stored.
std::unique_ptr<KernelCompiler> MakeInterpretingCompiler(TargetInfo target,
                                                         const BackendSource& backend);

}  // namespace fornax::kernel

// How much scratch memory a kernel may need, known before its code is made.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// At least hal::KernelDesc::scratch_bytes of any code of the kernel, which has been through the
// first passes. Nothing for kernels with barriers: what lives across those, only the final code
// tells.
std::optional<uint64_t> ScratchBound(const ir::Kernel& kernel);

}  // namespace fornax::kernel

// How much scratch memory a kernel may need, known before its code is made.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// At least hal::KernelDesc::scratch_bytes of any code of the kernel, as the reader made it or after
// the first passes, which lower it. Nothing for kernels with barriers: what lives across those,
// only the final code tells.
std::optional<uint64_t> ScratchBound(const ir::Kernel& kernel);

}  // namespace fornax::kernel

// Which stores bypass the caches: a property of the code that the compiler makes, which a
// description of the host as a device tells as well (fornax npu host).
#pragma once

#include <cstdint>

namespace fornax::kernel {

// Long streams to buffers of at least this size, which a kernel does not read. A buffer of this
// size is gone from the caches near the processor before it is read again.
inline constexpr uint64_t kStreamedBytes = 32U << 20;

}  // namespace fornax::kernel

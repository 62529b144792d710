// Copies and fills as the device runs them: small ones on the command processor's thread, large
// ones as grids of blocks over the workers, like any kernel.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "hal/command_stream.h"
#include "hal/model/worker_pool.h"

namespace fornax::hal::model {

// The ranges were checked; where they overlap the result is that of memmove.
Status CopyBytes(WorkerPool& pool,
                 Worker& self,
                 uint64_t source,
                 uint64_t destination,
                 uint64_t size_bytes);

// The ranges and counts were checked, and nothing is empty.
Status CopyRows(WorkerPool& pool, Worker& self, const CopyRowsPayload& copy);

// destination and size_bytes are multiples of 4.
Status FillBytes(WorkerPool& pool,
                 Worker& self,
                 uint64_t destination,
                 uint64_t size_bytes,
                 uint32_t pattern);

}  // namespace fornax::hal::model

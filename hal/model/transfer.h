// Copies and fills as the device runs them: small ones on the command processor's thread, large
// ones as grids of blocks over the workers, like any kernel.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/result.h"
#include "hal/command_stream.h"
#include "hal/model/worker_pool.h"

namespace fornax::hal::model {

// Runs an entry once on this thread, inside of the guard: a fault is an error, not the process's
// end.
Status RunGuarded(Worker& self, KernelEntry entry, const void* argument);

// Runs `access`, which touches memory that the application may have taken away: imported memory is
// its own. A fault leaves it in its middle, so it holds no lock and makes nothing with a
// destructor.
template <typename Access>
Status Guarded(Worker& self, const Access& access) {
    static_assert(std::is_trivially_destructible_v<Access>);
    return RunGuarded(
        self,
        [](const DispatchFrame* frame, WorkerFrame*, uint64_t, uint64_t) {
            (*static_cast<const Access*>(frame->push_constants))();
        },
        &access);
}

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

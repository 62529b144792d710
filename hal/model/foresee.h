// Tells kernels what their submitted dispatches will find bound (hal/foresight.h).
#pragma once

#include "hal/command_stream.h"
#include "hal/support/host_heap.h"

namespace fornax::hal::model {

// Looks through the stream and those that it chains to, if one of their kernels wants to know. What
// is malformed there is left to the command processor. Called by who submits.
void ForeseeDispatches(const CommandStream& stream, const HostHeap& heap);

}  // namespace fornax::hal::model

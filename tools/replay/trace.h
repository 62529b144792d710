// A profile as a trace of Perfetto (ui.perfetto.dev, trace_processor), in its protobuf format.
//
// A track a unit, more where the intervals of a unit overlap; flows lead from a submission over the
// packets of its records to their kernels and DMA; counters of DRAM, network, scratchpad and cores.
// The bytes of the slices of DRAM, network and host link add up to the replay's counters. Of
// matrix, vector and special-function units and scratchpads the replay knows how long they are busy
// in a computation and not when: their slices begin with it.
#pragma once

#include <string>

#include "tools/replay/profile.h"

namespace fornax::tool {

// The file's bytes.
std::string TraceOf(const Profile& profile);

}  // namespace fornax::tool

// A core's DMA engines: descriptors that stream between DRAM and the scratchpad.
//
// Source: Little's law (J. Little, "A Proof for the Queuing Formula L = lambda W", 1961): an engine
// with so many bursts under way, each of which takes the memory's latency, moves no more than
// outstanding * burst / latency; of machines whose caches answer sooner, what is measured of DRAM
// is `stream_gbs`. Time of a descriptor: setup + bytes / (min(port, fair share) * efficiency); the
// fair share is dram.h's and network.h's to say. Where no descriptor names what comes next, but a
// prefetcher finds it from what came before (J. Baer and T. Chen, "An effective on-chip preloading
// scheme", 1991), bursts that do not follow each other have a rate of their own, and bursts that
// may lie anywhere another one: of them not even the page is known (address translation, the row of
// DRAM that is open; JESD79-4).
#pragma once

#include "npu/description/description.h"
#include "npu/units/cycles.h"
#include "npu/units/dram.h"

namespace fornax::npu {

// Bytes in a cycle that the engines of `cores` cores move at most: port and Little's law.
double DmaBytesPerCycle(const Description& description, uint64_t cores);

// The cycles of all that enters and leaves the core that has most of it.
double DmaCycles(const Description& description, const Traffic& traffic, uint64_t cores);

// From a descriptor's begin to its first byte: setup, network and DRAM.
Cycles DmaLatency(const Description& description);

// The setups of `descriptors` descriptors, which a core's engines share.
Cycles DmaSetups(const Description& description, uint64_t descriptors);

}  // namespace fornax::npu

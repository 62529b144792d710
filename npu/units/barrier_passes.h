// Barriers between the passes of a workgroup: what one pass moves is there before the next one
// computes.
//
// Source: L. Valiant, "A Bridging Model for Parallel Computation" (1990): between two barriers the
// longer of computation and communication counts, and a program takes the sum over its supersteps.
// Whose engines run ahead of barriers, or whose other workgroups compute meanwhile, overlaps more:
// of what the sum is longer than the longer of both sums the share `dma.barrier_exposed` is waited
// for, once by each group of workgroups that are resident together (core.h).
#pragma once

#include <span>

#include "npu/description/description.h"
#include "npu/units/cycles.h"

namespace fornax::npu {

// What the workgroups of a core take together.
struct PassCycles {
    double compute = 0;
    double move = 0;  // all bytes, with nothing else to do
};

// Which share of a dispatch's bytes moves while its cores wait, dma.exposed at least: so much that
// the rest beside the computation takes the time with barriers. `all` is the whole dispatch.
double ExposedByBarriers(const Description& description,
                         std::span<const PassCycles> passes,
                         const PassCycles& all,
                         uint64_t workgroups,
                         uint64_t occupancy);

}  // namespace fornax::npu

// How a product of a whole dispatch is divided over the matrix units of a description, and what of
// its operands is read again because the scratchpads are too small.
//
// As the plan of a graph compiler for the described machine would: over batches, columns and rows
// of the result, so that the longest of what a core computes and what it and DRAM move is as short
// as can be. Sums over k are not divided.
#pragma once

#include "npu/replay/records.h"

namespace fornax::npu {

struct SplitProduct {
    uint64_t pieces = 0;            // each on a matrix unit of its own
    uint64_t cores = 0;             // that have a piece
    Cycles cycles = 0;              // of the longest piece
    Cycles busy = 0;                // of all pieces, on all units
    uint64_t scratchpad_bytes = 0;  // that all pieces take from scratchpads and put there
    uint64_t port_bytes = 0;        // operands that enter the core that has most
    uint64_t read_again = 0;        // bytes from DRAM beside each operand once
};

// `product` is of a dispatch of kWhole, and the description has a rate for its type.
SplitProduct SplitOverUnits(const Description& description, const Product& product);

}  // namespace fornax::npu

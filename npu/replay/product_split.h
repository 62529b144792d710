// How a product of a whole dispatch may be divided over the matrix units of a description, and what
// of its operands is read again because the scratchpads are too small.
//
// Pieces are parts of the batch, of the columns and of the rows of the result; sums over k are not
// divided. Which division is best depends on what else the dispatch does (dispatch_cost.h): a plan
// for the described machine would choose the fastest.
#pragma once

#include <vector>

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

// The divisions of which none is worse than another in everything: cycles, scratchpad accesses of a
// core, operands that enter a core or are read again, cores. At least one of a product that is not
// empty, else none. `product` is of a dispatch of kWhole, and the description has a rate for its
// type.
std::vector<SplitProduct> SplitsOverUnits(const Description& description, const Product& product);

}  // namespace fornax::npu

// Accumulators of matrix multiply-accumulates (MMAs) that can stay where they are kept: elements of
// an array of matrices in private memory that are loaded, added to and stored again, or an
// accumulator that goes from MMA to MMA.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

struct MatrixAccumulators {
    struct Location {
        uint64_t local = 0;
        uint64_t first = 0;  // element
        friend bool operator==(const Location&, const Location&) = default;
    };
    // By first result: each matrix_muladd whose C is a run of one local, loaded by constant
    // indices, and whose results only go to the same elements of it, and nothing in between looks
    // at them: the MMA may be made there, at any time before they are next looked at. Runs begin
    // at multiples of a matrix's elements.
    std::map<uint32_t, Location> mmas;
    // By first result: MMAs of a block, each of which but the first adds to what the one before
    // gave, which nothing else uses.
    struct InChain {
        uint32_t chain = 0;  // the first one's first result
        bool ends = false;
    };
    std::map<uint32_t, InChain> chains;
    // Instructions, by index: loads of accumulators that nothing else uses, and their stores.
    std::set<uint32_t> accesses;
};

MatrixAccumulators FindMatrixAccumulators(const ir::Kernel& kernel);

}  // namespace fornax::kernel

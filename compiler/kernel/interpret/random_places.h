// The part of the random kernels' generator that chooses places in memory: offsets that meet the
// many forms which the compiler tells apart.
#pragma once

#include <array>

#include "compiler/kernel/interpret/random_values.h"

namespace fornax::kernel {

class RandomPlaces : protected RandomValues {
  protected:
    using RandomValues::RandomValues;

    // Memory holds no bool, and no float whose NaN bits could differ.
    ir::Type MemoryType();
    // An offset of `run` elements inside `bytes`, aligned to the element.
    ir::ValueId OffsetWithin(uint32_t bytes, ir::Type type, uint32_t run);
    struct Place {
        ir::ValueId buffer;
        ir::ValueId offset;
        uint32_t align;
    };
    // Offsets that differ from lane to lane by a constant, which memory selection looks at; with a
    // last one that may lie outside.
    Place Strided(ir::Type type, uint32_t run, bool inside = false);
    // An offset in binding 2: a lane's row times a row length from memory.
    Place RowStrided(ir::Type type);
    // In the invocation's own part of binding 0, which is one piece, or several in planes that all
    // invocations' pieces make up.
    Place Own(ir::Type type, uint32_t run);
    // A write must not meet other invocations' accesses, if portable.
    Place BufferPlace(ir::Type type, uint32_t run, bool write);

    uint32_t invocations_ = 0;  // of a workgroup
    ir::ValueId local_index_;
    ir::ValueId own_;         // offset of the invocation's first piece of binding 0
    uint32_t own_bytes_ = 0;  // of a piece
    std::array<ir::ValueId, 3> buffers_;
};

}  // namespace fornax::kernel

// Vector units and the special-function unit of a core: elementwise work in vectors of lanes.
//
// Source: the usual throughput bound, sum over kinds of ceil(operations / lanes) * initiation
// interval, as in the reservation tables of J. Hennessy and D. Patterson, "Computer Architecture",
// appendix G. Lanes without work cost as much as lanes with it. Special functions may be sequences
// of the vector units' instructions instead of a unit's; their time adds to the others' then.
#pragma once

#include "npu/description/description.h"
#include "npu/units/cycles.h"

namespace fornax::npu {

// Scalar operations by the unit and interval that they take.
struct Operations {
    uint64_t simple = 0;        // additions, multiplications, comparisons, conversions, moves
    uint64_t multiply_add = 0;  // both in one
    uint64_t division = 0;      // divisions and remainders
    uint64_t special = 0;       // exponentials, logarithms, roots, trigonometry
    uint64_t total() const { return simple + multiply_add + division + special; }
};

// Cycles of all vector units of a core together, of elements with `element_bits` (8 to 64).
// Includes special functions where they have no unit of their own.
Cycles CyclesOnVectorUnits(const Description& description,
                           const Operations& operations,
                           uint32_t element_bits);

// Cycles of a core's special-function unit; 0 where there is none.
Cycles CyclesOnSpecialUnit(const Description& description, const Operations& operations);

}  // namespace fornax::npu

// The banks of a core's scratchpad: each serves one access of its width in a cycle.
//
// Source: interleaved memory, J. Hennessy and D. Patterson, "Computer Architecture", section 5.8 of
// the second edition: with a stride of s words, banks/gcd(s, banks) of the banks are used, so that
// an access of all banks at once takes gcd(s, banks) cycles.
#pragma once

#include "npu/description/description.h"
#include "npu/units/cycles.h"

namespace fornax::npu {

// How many cycles an access takes that would take one without conflicts. A stride of 0 words is the
// same word for all, which is sent to all in one cycle.
uint64_t ConflictDegree(uint64_t stride_words, uint64_t banks);

// To move `bytes` between the scratchpad and a core's units with accesses of the given stride.
Cycles CyclesOnBanks(const Description& description, uint64_t bytes, uint64_t stride_words);

// Accesses of single elements that lie anywhere, spread evenly over the banks: an element is an
// access, however wide a bank is.
Cycles CyclesOfSingleAccesses(const Description& description, uint64_t accesses);

}  // namespace fornax::npu

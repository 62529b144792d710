#include "npu/units/scratchpad_banks.h"

#include <numeric>

namespace fornax::npu {

uint64_t ConflictDegree(uint64_t stride_words, uint64_t banks) {
    return stride_words == 0 ? 1 : std::gcd(stride_words, banks);
}

Cycles CyclesOnBanks(const Description& description, uint64_t bytes, uint64_t stride_words) {
    const Description::Scratchpad& scratchpad = description.scratchpad;
    return CeilDivide(bytes, scratchpad.banks * scratchpad.bank_bytes) *
           ConflictDegree(stride_words, scratchpad.banks);
}

Cycles CyclesOfSingleAccesses(const Description& description, uint64_t accesses) {
    return CeilDivide(accesses, description.scratchpad.banks);
}

}  // namespace fornax::npu

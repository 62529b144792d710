// A proxy of a machine's area, to weigh larger machines against faster ones. It ranks descriptions
// of one family; it is no estimate of a chip.
//
// Source: areas of operations in a 45 nm process as W. Dally's lectures and M. Horowitz (ISSCC
// 2014) give them: an int8 multiplier and adder 318 square micrometres, f16 3,000, f32 11,884, an
// SRAM cell 0.374. Interfaces are an assumption of the same order: 0.1 square millimetres for each
// GB/s of DRAM, 0.01 of the network.
#pragma once

#include "npu/description/description.h"

namespace fornax::npu {

struct AreaProxy {
    double matrix_mm2 = 0;
    double vector_mm2 = 0;
    double special_mm2 = 0;
    double scratchpad_mm2 = 0;
    double interfaces_mm2 = 0;
    double total_mm2() const {
        return matrix_mm2 + vector_mm2 + special_mm2 + scratchpad_mm2 + interfaces_mm2;
    }
};

AreaProxy AreaProxyOf(const Description& description);

}  // namespace fornax::npu

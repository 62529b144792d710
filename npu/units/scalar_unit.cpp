#include "npu/units/scalar_unit.h"

namespace fornax::npu {

Cycles CyclesOnScalarUnit(const Description& description, uint64_t operations) {
    return WholeCycles(static_cast<double>(operations) * description.scalar.interval);
}

}  // namespace fornax::npu

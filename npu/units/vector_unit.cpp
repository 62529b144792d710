#include "npu/units/vector_unit.h"

namespace fornax::npu {

Cycles CyclesOnVectorUnits(const Description& description,
                           const Operations& operations,
                           uint32_t element_bits) {
    const Description::Vector& vector = description.vector;
    const uint64_t lanes =
        std::max<uint64_t>(1, vector.bits / std::max(element_bits, 8U)) * vector.units;
    const auto vectors = [&](uint64_t count) {
        return static_cast<double>(CeilDivide(count, lanes));
    };
    return WholeCycles(vectors(operations.simple) * vector.simple_interval +
                       vectors(operations.division) * vector.division_interval);
}

Cycles CyclesOnSpecialUnit(const Description& description, const Operations& operations) {
    const uint64_t vectors = CeilDivide(operations.special, description.special.lanes);
    return WholeCycles(static_cast<double>(vectors) * description.special.interval);
}

}  // namespace fornax::npu

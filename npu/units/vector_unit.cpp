#include "npu/units/vector_unit.h"

namespace fornax::npu {
namespace {

double CyclesOfSpecial(const Description& description, uint64_t operations) {
    return static_cast<double>(CeilDivide(operations, description.special.lanes)) *
           description.special.interval;
}

}  // namespace

Cycles CyclesOnVectorUnits(const Description& description,
                           const Operations& operations,
                           uint32_t element_bits) {
    const Description::Vector& vector = description.vector;
    const uint64_t lanes =
        std::max<uint64_t>(1, vector.bits / std::max(element_bits, 8U)) * vector.units;
    const auto vectors = [&](uint64_t count) {
        return static_cast<double>(CeilDivide(count, lanes));
    };
    double cycles = vectors(operations.division) * vector.division_interval;
    if (vector.multiply_add_interval > 0) {
        cycles += vectors(operations.simple) * vector.simple_interval +
                  vectors(operations.multiply_add) * vector.multiply_add_interval;
    } else {
        cycles += vectors(operations.simple + operations.multiply_add) * vector.simple_interval;
    }
    if (description.special.unit == SpecialUnit::kVector) {
        cycles += CyclesOfSpecial(description, operations.special);
    }
    return WholeCycles(cycles);
}

Cycles CyclesOnSpecialUnit(const Description& description, const Operations& operations) {
    return description.special.unit == SpecialUnit::kOwn
               ? WholeCycles(CyclesOfSpecial(description, operations.special))
               : 0;
}

}  // namespace fornax::npu

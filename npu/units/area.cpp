#include "npu/units/area.h"

#include <algorithm>

namespace fornax::npu {
namespace {

// Square micrometres.
constexpr double kMac[kMatrixTypes] = {318, 3'000, 3'000, 11'884};
constexpr double kVectorLane = 11'884;               // a fused f32 operation in a cycle
constexpr double kSpecialLane = 2 * 11'884;          // a polynomial and its table
constexpr double kScratchpadByte = 8 * 0.374 * 1.5;  // half as much again for decoders and sensing

// Square millimetres for each GB/s.
constexpr double kDramInterface = 0.1;
constexpr double kNetworkInterface = 0.01;

}  // namespace

AreaProxy AreaProxyOf(const Description& description) {
    const auto cores = static_cast<double>(description.cores.count());
    const auto mm2 = [&](double of_a_core) { return cores * of_a_core / 1e6; };
    // Types share multipliers: an element is as large as the type needs that asks for most.
    double element = 0;
    for (uint32_t i = 0; i < kMatrixTypes; ++i) {
        element = std::max(element, kMac[i] * description.matrix.rate(static_cast<MatrixType>(i)));
    }
    const Description::Matrix& matrix = description.matrix;
    const Description::Vector& vector = description.vector;
    AreaProxy area;
    area.matrix_mm2 =
        mm2(static_cast<double>(matrix.units * matrix.rows * matrix.columns) * element);
    // A shorter interval takes more units behind the same issue; multipliers are most of them.
    const double interval =
        vector.multiply_add_interval > 0 ? vector.multiply_add_interval : vector.simple_interval;
    area.vector_mm2 =
        mm2(static_cast<double>(vector.units * vector.bits) / 32 * kVectorLane / interval);
    if (description.special.unit == SpecialUnit::kOwn) {
        area.special_mm2 = mm2(static_cast<double>(description.special.lanes) * kSpecialLane /
                               description.special.interval);
    }
    area.scratchpad_mm2 = mm2(static_cast<double>(description.scratchpad.bytes) * kScratchpadByte);
    area.interfaces_mm2 = description.dram.bandwidth_gbs * kDramInterface +
                          description.network.bandwidth_gbs * kNetworkInterface;
    return area;
}

}  // namespace fornax::npu

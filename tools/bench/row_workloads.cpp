// Workloads on the rows of a matrix as neural networks have them: softmax, layer normalisation,
// GELU, on f32 and on f16.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "tools/bench/half_bits.h"
#include "tools/bench/kernel_workload.h"
#include "tools/bench/shaders/gelu_f16.spv.h"
#include "tools/bench/shaders/gelu_f32.spv.h"
#include "tools/bench/shaders/layer_norm_f16.spv.h"
#include "tools/bench/shaders/layer_norm_f32.spv.h"
#include "tools/bench/shaders/softmax_f16.spv.h"
#include "tools/bench/shaders/softmax_f32.spv.h"

namespace fornax::bench {
namespace {

using Row = std::vector<double>;

struct RowKernel {
    const char* name;
    std::span<const uint32_t> f32;
    std::span<const uint32_t> f16;
    uint32_t groups_x;    // workgroups a row
    double cancellation;  // how far off f32 may be where terms cancel
    void (*reference)(Row& row);
};

void Softmax(Row& row) {
    const double peak = *std::ranges::max_element(row);
    double sum = 0;
    for (double& value : row) {
        sum += value = std::exp(value - peak);
    }
    for (double& value : row) {
        value /= sum;
    }
}

void LayerNorm(Row& row) {
    double sum = 0;
    double squares = 0;
    for (double value : row) {
        sum += value;
        squares += value * value;
    }
    const auto count = static_cast<double>(row.size());
    const double mean = sum / count;
    const double scale = 1 / std::sqrt(squares / count - mean * mean + 1e-5);
    for (double& value : row) {
        value = (value - mean) * scale;
    }
}

void Gelu(Row& row) {
    for (double& value : row) {
        value *= 0.5 * (1 + std::tanh(0.7978845608 * value * (1 + 0.044715 * value * value)));
    }
}

constexpr uint32_t kGroupSize = 256;
const RowKernel kSoftmax = {"softmax", spirv::kSoftmaxF32, spirv::kSoftmaxF16, 1, 1e-9, Softmax};
const RowKernel kLayerNorm = {"layer norm", spirv::kLayerNormF32, spirv::kLayerNormF16, 1, 1e-6,
                              LayerNorm};
const RowKernel kGelu = {"gelu", spirv::kGeluF32, spirv::kGeluF16, kLongRow / kGroupSize, 1e-6,
                         Gelu};

// T: float, or uint16_t for the bits of f16.
template <typename T, const RowKernel& kKernel>
class RowWorkload : public KernelWorkload {
  public:
    explicit RowWorkload(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t rows) {
        rows_ = rows;
        const size_t count = size_t{rows} * kLongRow;
        FORNAX_RETURN_IF_ERROR(AddBuffer<T>(count));
        FORNAX_RETURN_IF_ERROR(AddBuffer<T>(count));
        for (uint32_t i = 0; i < count; ++i) {
            if constexpr (kHalf) {
                Data<T>(0)[i] = HalfBits(X(i));
            } else {
                Data<T>(0)[i] = X(i);
            }
        }
        std::ranges::fill(Data<T>(1), T{7});
        const Grid grid = kKernel.groups_x == 1 ? Grid{rows_, 1} : Grid{kKernel.groups_x, rows_};
        return Prepare(kHalf ? kKernel.f16 : kKernel.f32, kLongRow, grid);
    }

    // Vulkan lets exp and tanh be a few units in the last place off, and f16 rounds twice.
    Status Verify() override {
        constexpr double kTolerance = kHalf ? 4e-3 : 2e-5;
        constexpr double kSmallest = kHalf ? 1e-6 : 0;
        constexpr uint32_t kStep = 17;  // rows between those that are looked at
        const std::span<T> y = Data<T>(1);
        Row row(kLongRow);
        for (size_t r = 0; r < rows_; r += kStep) {
            for (uint32_t i = 0; i < kLongRow; ++i) {
                row[i] = X(static_cast<uint32_t>(r * kLongRow + i));
            }
            kKernel.reference(row);
            for (uint32_t i = 0; i < kLongRow; ++i) {
                const size_t index = r * kLongRow + i;
                double value = 0;
                if constexpr (kHalf) {
                    value = HalfValue(y[index]);
                } else {
                    value = y[index];
                }
                const double allowed =
                    kTolerance * std::abs(row[i]) + kSmallest + kKernel.cancellation;
                if (!(std::abs(value - row[i]) <= allowed)) {
                    return WrongResult(kKernel.name, index, value, row[i]);
                }
            }
        }
        return OkStatus();
    }

  private:
    static constexpr bool kHalf = std::is_same_v<T, uint16_t>;

    // Exact in f16.
    static float X(uint32_t i) { return (static_cast<float>(i * 7919u % 509) - 254) / 64; }

    uint32_t rows_ = 0;
};

}  // namespace

WorkloadResult CreateSoftmax(Device& device, uint32_t rows) {
    return CreateWorkload<RowWorkload<float, kSoftmax>>(device, rows);
}

WorkloadResult CreateSoftmaxHalf(Device& device, uint32_t rows) {
    return CreateWorkload<RowWorkload<uint16_t, kSoftmax>>(device, rows);
}

WorkloadResult CreateLayerNorm(Device& device, uint32_t rows) {
    return CreateWorkload<RowWorkload<float, kLayerNorm>>(device, rows);
}

WorkloadResult CreateLayerNormHalf(Device& device, uint32_t rows) {
    return CreateWorkload<RowWorkload<uint16_t, kLayerNorm>>(device, rows);
}

WorkloadResult CreateGelu(Device& device, uint32_t rows) {
    return CreateWorkload<RowWorkload<float, kGelu>>(device, rows);
}

WorkloadResult CreateGeluHalf(Device& device, uint32_t rows) {
    return CreateWorkload<RowWorkload<uint16_t, kGelu>>(device, rows);
}

}  // namespace fornax::bench

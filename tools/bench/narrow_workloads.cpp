// Workloads on 8- and 16-bit memory: f16 and int8 element by element, the blocks of a quantised
// model to floats.
//
// Values are chosen so that every operation is exact: results are compared for equality.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "tools/bench/half_bits.h"
#include "tools/bench/kernel_workload.h"
#include "tools/bench/shaders/dequantize_q4_0_to_f16.spv.h"
#include "tools/bench/shaders/dequantize_q4_0_to_f32.spv.h"
#include "tools/bench/shaders/half_axpy.spv.h"
#include "tools/bench/shaders/int8_add.spv.h"

namespace fornax::bench {
namespace {

constexpr uint32_t kGroupSize = 256;
constexpr uint32_t kMaxGroupsX = 256;

Grid GridOf(uint32_t invocations) {
    const uint32_t groups = (invocations + kGroupSize - 1) / kGroupSize;
    const uint32_t x = std::min(groups, kMaxGroupsX);
    return {x, (groups + x - 1) / x};
}

class HalfAxpy : public KernelWorkload {
  public:
    explicit HalfAxpy(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t count) {
        FORNAX_RETURN_IF_ERROR(AddBuffer<uint16_t>(count));
        FORNAX_RETURN_IF_ERROR(AddBuffer<uint16_t>(count));
        for (uint32_t i = 0; i < count; ++i) {
            Data<uint16_t>(0)[i] = HalfBits(X(i));
            Data<uint16_t>(1)[i] = HalfBits(Y(i));
        }
        const struct {
            uint32_t count;
            float a;
        } constants = {count, kA};
        return Prepare(spirv::kHalfAxpy, constants, GridOf(count));
    }

    Status Verify() override {
        const std::span<uint16_t> y = Data<uint16_t>(1);
        for (uint32_t i = 0; i < y.size(); ++i) {
            const uint16_t expected = HalfBits(Y(i) + kA * X(i));
            if (y[i] != expected) {
                return WrongResult("half axpy, bits", i, y[i], expected);
            }
        }
        return OkStatus();
    }

  private:
    static constexpr float kA = 2.0f;

    static float X(uint32_t i) { return static_cast<float>(i % 251); }
    static float Y(uint32_t i) { return static_cast<float>(i % 1021); }
};

class Int8Add : public KernelWorkload {
  public:
    explicit Int8Add(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t count) {
        for (int i = 0; i < 3; ++i) {
            FORNAX_RETURN_IF_ERROR(AddBuffer<int8_t>(count));
        }
        for (uint32_t i = 0; i < count; ++i) {
            Data<int8_t>(0)[i] = X(i);
            Data<int8_t>(1)[i] = Y(i);
        }
        std::ranges::fill(Data<int8_t>(2), int8_t{77});
        const struct {
            uint32_t count;
            int32_t scale;
        } constants = {count, kScale};
        return Prepare(spirv::kInt8Add, constants, GridOf(count));
    }

    Status Verify() override {
        const std::span<int8_t> z = Data<int8_t>(2);
        for (uint32_t i = 0; i < z.size(); ++i) {
            const int expected = std::clamp(X(i) + (kScale * Y(i) >> 6), -128, 127);
            if (z[i] != expected) {
                return WrongResult("int8 add", i, z[i], expected);
            }
        }
        return OkStatus();
    }

  private:
    static constexpr int32_t kScale = 45;

    static int8_t X(uint32_t i) { return static_cast<int8_t>(i * 7); }
    static int8_t Y(uint32_t i) { return static_cast<int8_t>(i * 13 + i / 256); }
};

// Out: float, or uint16_t for the bits of f16.
template <typename Out>
class Dequantize : public KernelWorkload {
  public:
    explicit Dequantize(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t blocks) {
        FORNAX_RETURN_IF_ERROR(AddBuffer<uint8_t>(size_t{blocks} * kQ4BlockBytes));
        FORNAX_RETURN_IF_ERROR(AddBuffer<Out>(size_t{blocks} * kQ4BlockValues));
        for (uint32_t i = 0; i < blocks; ++i) {
            uint8_t* block = Data<uint8_t>(0).data() + size_t{i} * kQ4BlockBytes;
            const uint16_t scale = HalfBits(Scale(i));
            std::memcpy(block, &scale, 2);
            for (uint32_t k = 0; k < kQ4BlockValues / 2; ++k) {
                block[2 + k] = Byte(i, k);
            }
        }
        std::ranges::fill(Data<Out>(1), Out{1});
        return Prepare(std::is_same_v<Out, float>
                           ? std::span<const uint32_t>(spirv::kDequantizeQ40ToF32)
                           : std::span<const uint32_t>(spirv::kDequantizeQ40ToF16),
                       blocks, GridOf(blocks * 2));
    }

    Status Verify() override {
        const std::span<Out> values = Data<Out>(1);
        for (uint32_t i = 0; i < values.size(); ++i) {
            const uint32_t block = i / kQ4BlockValues;
            const uint32_t at = i % kQ4BlockValues;
            const uint8_t byte = Byte(block, at % 16);
            const int nibble = at < 16 ? byte & 15 : byte >> 4;
            const float expected = Scale(block) * static_cast<float>(nibble - 8);
            if constexpr (std::is_same_v<Out, float>) {
                if (values[i] != expected) {
                    return WrongResult("q4_0 to f32", i, values[i], expected);
                }
            } else {
                if (values[i] != HalfBits(expected)) {
                    return WrongResult("q4_0 to f16, bits", i, values[i], HalfBits(expected));
                }
            }
        }
        return OkStatus();
    }

  private:
    static float Scale(uint32_t block) { return static_cast<float>(block % 61 + 1) / 64; }
    static uint8_t Byte(uint32_t block, uint32_t i) {
        return static_cast<uint8_t>(block * 37 + i * 41);
    }
};

}  // namespace

WorkloadResult CreateHalfAxpy(Device& device, uint32_t count) {
    return CreateWorkload<HalfAxpy>(device, count);
}

WorkloadResult CreateInt8Add(Device& device, uint32_t count) {
    return CreateWorkload<Int8Add>(device, count);
}

WorkloadResult CreateDequantizeToFloat(Device& device, uint32_t blocks) {
    return CreateWorkload<Dequantize<float>>(device, blocks);
}

WorkloadResult CreateDequantizeToHalf(Device& device, uint32_t blocks) {
    return CreateWorkload<Dequantize<uint16_t>>(device, blocks);
}

}  // namespace fornax::bench

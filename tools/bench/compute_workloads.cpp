// Workloads that arithmetic bounds: chains of fused multiply-adds, matrix multiplication, divergent
// loops.
#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "tools/bench/kernel_workload.h"
#include "tools/bench/shaders/fma_chains.spv.h"
#include "tools/bench/shaders/mandelbrot.spv.h"
#include "tools/bench/shaders/matrix_sgemm.spv.h"
#include "tools/bench/shaders/sgemm.spv.h"

namespace fornax::bench {
namespace {

class FmaChains : public KernelWorkload {
  public:
    explicit FmaChains(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t invocations) {
        FORNAX_RETURN_IF_ERROR(AddBuffer<float>(invocations));
        for (uint32_t i = 0; i < invocations; ++i) {
            Data<float>(0)[i] = Start(i);
        }
        const struct {
            uint32_t steps;
            float factor;
            float addend;
        } constants = {kFmaSteps, kFactor, kAddend};
        return Prepare(spirv::kFmaChains, constants, {invocations / kGroupSize, 1});
    }

    // A driver may round after the multiplication (precision of fma() in the SPIR-V environment),
    // and 1,024 steps of at most a unit in the last place each sum up to 1.2e-4.
    Status Verify() override {
        constexpr double kRelativeTolerance = 2e-4;
        const std::span<float> result = Data<float>(0);
        for (uint32_t i = 0; i < result.size(); ++i) {
            double expected = 0;
            for (uint32_t chain = 0; chain < kFmaChains; ++chain) {
                expected += Expected(double{Start(i)} + chain);
            }
            if (!(std::abs(result[i] - expected) <= kRelativeTolerance * std::abs(expected))) {
                return WrongResult("fma chains", i, result[i], expected);
            }
        }
        return OkStatus();
    }

  private:
    static constexpr uint32_t kGroupSize = 256;
    // The factor is just below one, so that the starting value still shows after all the steps.
    static constexpr float kFactor = 1.0f - 1.0f / 1024;
    static constexpr float kAddend = 1.0f / 512;

    static float Start(uint32_t i) { return static_cast<float>(i % 97); }

    // The closed form of x = factor * x + addend, applied kFmaSteps times.
    static double Expected(double start) {
        static const double power = std::pow(double{kFactor}, kFmaSteps);
        const double fixed_point = kAddend / (1.0 - kFactor);
        return fixed_point + (start - fixed_point) * power;
    }
};

class Sgemm : public KernelWorkload {
  public:
    explicit Sgemm(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t side) { return Init(side, /*on_matrices=*/false); }

    Status Verify() override {
        const std::span<float> a = Data<float>(0);
        const std::span<float> c = Data<float>(2);
        std::vector<float> expected(side_);
        for (size_t row = 0; row < side_; ++row) {
            std::ranges::fill(expected, 0.0f);
            for (uint32_t k = 0; k < side_; ++k) {
                const float factor = a[row * side_ + k];
                for (uint32_t column = 0; column < side_; ++column) {
                    expected[column] += factor * ElementOfB(k, column);
                }
            }
            for (size_t column = 0; column < side_; ++column) {
                const size_t index = row * side_ + column;
                if (c[index] != expected[column]) {
                    return WrongResult("sgemm", index, c[index], expected[column]);
                }
            }
        }
        return OkStatus();
    }

  protected:
    Status Init(uint32_t side, bool on_matrices) {
        side_ = side;
        for (int i = 0; i < 3; ++i) {
            FORNAX_RETURN_IF_ERROR(AddBuffer<float>(size_t{side} * side));
        }
        // Integers from -8 to 8: sums of 1,024 products stay below 2^24, where floats are exact.
        for (uint32_t i = 0; i < side * side; ++i) {
            Data<float>(0)[i] = static_cast<float>(i * 7919u % 17) - 8;
        }
        for (uint32_t k = 0; k < side; ++k) {
            for (uint32_t column = 0; column < side; ++column) {
                const uint32_t at = on_matrices
                                        ? (column / kPanel * side + k) * kPanel + column % kPanel
                                        : k * side + column;
                Data<float>(1)[at] = ElementOfB(k, column);
            }
        }
        std::ranges::fill(Data<float>(2), -1e30f);
        return on_matrices
                   ? Prepare(spirv::kMatrixSgemm, side, {side / kTile, side / kMatrixTileRows})
                   : Prepare(spirv::kSgemm, side, {side / kTile, side / kTile});
    }

  private:
    static constexpr uint32_t kTile = 64;
    static constexpr uint32_t kMatrixTileRows = 32;
    static constexpr uint32_t kPanel = 16;  // columns

    float ElementOfB(uint32_t k, uint32_t column) const {
        return static_cast<float>((k * side_ + column) * 104729u % 13) - 6;
    }

    uint32_t side_ = 0;
};

class MatrixSgemm : public Sgemm {
  public:
    explicit MatrixSgemm(Device& device)
        : Sgemm(device), on_matrices_(device.MultipliesFloatMatrices()) {}

    Status Init(uint32_t side) { return Sgemm::Init(side, on_matrices_); }

  private:
    const bool on_matrices_;
};

class Mandelbrot : public KernelWorkload {
  public:
    explicit Mandelbrot(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t side) {
        side_ = side;
        FORNAX_RETURN_IF_ERROR(AddBuffer<uint32_t>(size_t{side} * side));
        std::ranges::fill(Data<uint32_t>(0), UINT32_MAX);
        const uint32_t constants[2] = {side, kMaxSteps};
        return Prepare(spirv::kMandelbrot, constants, {side / kTile, side / kTile});
    }

    // Points next to the border of the set are chaotic: whether a driver fuses a multiplication
    // with an addition changes when they escape. They are few, everywhere else the count must be
    // equal.
    Status Verify() override {
        const std::span<uint32_t> escape = Data<uint32_t>(0);
        const size_t allowed = escape.size() / 100;
        size_t different = 0;
        for (uint32_t y = 0; y < side_; ++y) {
            for (uint32_t x = 0; x < side_; ++x) {
                const size_t index = size_t{y} * side_ + x;
                if (escape[index] > kMaxSteps) {
                    return WrongResult("mandelbrot", index, escape[index], EscapeTime(x, y));
                }
                different += escape[index] != EscapeTime(x, y);
            }
        }
        if (different > allowed) {
            return Error{ErrorCode::kInternal,
                         fmt::format("mandelbrot: {} of {} points escape at another step than in "
                                     "C++; at most {} may.",
                                     different, escape.size(), allowed)};
        }
        return OkStatus();
    }

  private:
    static constexpr uint32_t kTile = 16;
    static constexpr uint32_t kMaxSteps = 256;

    uint32_t EscapeTime(uint32_t x, uint32_t y) const {
        const float scale = 3.0f / static_cast<float>(side_);
        const float cx = static_cast<float>(x) * scale - 2.25f;
        const float cy = static_cast<float>(y) * scale - 1.5f;
        float zx = 0;
        float zy = 0;
        uint32_t step = 0;
        while (step < kMaxSteps && zx * zx + zy * zy <= 4.0f) {
            const float next_zx = zx * zx - zy * zy + cx;
            zy = 2.0f * zx * zy + cy;
            zx = next_zx;
            ++step;
        }
        return step;
    }

    uint32_t side_ = 0;
};

}  // namespace

WorkloadResult CreateFmaChains(Device& device, uint32_t invocations) {
    return CreateWorkload<FmaChains>(device, invocations);
}

WorkloadResult CreateSgemm(Device& device, uint32_t side) {
    return CreateWorkload<Sgemm>(device, side);
}

WorkloadResult CreateMatrixSgemm(Device& device, uint32_t side) {
    return CreateWorkload<MatrixSgemm>(device, side);
}

WorkloadResult CreateMandelbrot(Device& device, uint32_t side) {
    return CreateWorkload<Mandelbrot>(device, side);
}

}  // namespace fornax::bench

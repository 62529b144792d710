// Workloads that memory bounds: saxpy, copies, row sums, transposition.
//
// Values are small integers, which floats add and multiply exactly, so results are compared for
// equality whatever order a driver sums in and whether it fuses or not.
#include <algorithm>
#include <array>
#include <memory>

#include "tools/bench/kernel_workload.h"
#include "tools/bench/shaders/histogram.spv.h"
#include "tools/bench/shaders/row_sums.spv.h"
#include "tools/bench/shaders/saxpy.spv.h"
#include "tools/bench/shaders/transpose.spv.h"

namespace fornax::bench {
namespace {

class Saxpy : public KernelWorkload {
  public:
    explicit Saxpy(Device& device, uint32_t dispatches = 1)
        : KernelWorkload(device), dispatches_(dispatches) {}

    Status Init(uint32_t count) {
        FORNAX_RETURN_IF_ERROR(AddBuffer<float>(count));
        FORNAX_RETURN_IF_ERROR(AddBuffer<float>(count));
        for (uint32_t i = 0; i < count; ++i) {
            Data<float>(0)[i] = X(i);
            Data<float>(1)[i] = Y(i);
        }
        const struct {
            uint32_t count;
            float a;
        } constants = {count, kA};
        const uint32_t groups = (count + kGroupSize - 1) / kGroupSize;
        const uint32_t groups_x = std::min(groups, kMaxGroupsX);
        return Prepare(spirv::kSaxpy, constants, {groups_x, (groups + groups_x - 1) / groups_x},
                       dispatches_);
    }

    Status Verify() override {
        const std::span<float> y = Data<float>(1);
        for (uint32_t i = 0; i < y.size(); ++i) {
            const float expected = Y(i) + static_cast<float>(dispatches_) * kA * X(i);
            if (y[i] != expected) {
                return WrongResult("saxpy", i, y[i], expected);
            }
        }
        return OkStatus();
    }

  private:
    static constexpr uint32_t kGroupSize = 256;
    static constexpr uint32_t kMaxGroupsX = 256;
    static constexpr float kA = 2.0f;

    static float X(uint32_t i) { return static_cast<float>(i % 1021); }
    static float Y(uint32_t i) { return static_cast<float>(i % 4093); }

    uint32_t dispatches_;
};

class CachedSaxpy : public Saxpy {
  public:
    explicit CachedSaxpy(Device& device) : Saxpy(device, kCachedSaxpyDispatches) {}
};

class Copy : public Workload {
  public:
    explicit Copy(Device& device) : device_(device) {}

    Status Init(uint32_t size_bytes) {
        FORNAX_ASSIGN_OR_RETURN(source_, device_.CreateBuffer(size_bytes));
        FORNAX_ASSIGN_OR_RETURN(destination_, device_.CreateBuffer(size_bytes));
        const std::span<uint32_t> source = source_.As<uint32_t>();
        for (uint32_t i = 0; i < source.size(); ++i) {
            source[i] = i * 2654435761u;
        }
        std::ranges::fill(destination_.As<uint8_t>(), uint8_t{0xA5});

        FORNAX_ASSIGN_OR_RETURN(commands_, device_.BeginCommands());
        const VkBufferCopy region = {0, 0, size_bytes};
        vkCmdCopyBuffer(commands_, source_.handle(), destination_.handle(), 1, &region);
        return device_.EndCommands(commands_);
    }

    Result<double> Run() override { return device_.Submit(commands_); }

    Status Verify() override {
        const std::span<uint32_t> source = source_.As<uint32_t>();
        const std::span<uint32_t> destination = destination_.As<uint32_t>();
        for (size_t i = 0; i < source.size(); ++i) {
            if (source[i] != destination[i]) {
                return WrongResult("copy", i, destination[i], source[i]);
            }
        }
        return OkStatus();
    }

  private:
    Device& device_;
    Buffer source_;
    Buffer destination_;
    VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

class RowSums : public KernelWorkload {
  public:
    explicit RowSums(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t rows) {
        FORNAX_RETURN_IF_ERROR(AddBuffer<float>(size_t{rows} * kRowLength));
        FORNAX_RETURN_IF_ERROR(AddBuffer<float>(rows));
        const std::span<float> matrix = Data<float>(0);
        for (uint32_t i = 0; i < matrix.size(); ++i) {
            matrix[i] = static_cast<float>(i % 127);
        }
        std::ranges::fill(Data<float>(1), -1.0f);
        return Prepare(spirv::kRowSums, kRowLength, {rows, 1});
    }

    Status Verify() override {
        const std::span<float> matrix = Data<float>(0);
        const std::span<float> sums = Data<float>(1);
        for (size_t row = 0; row < sums.size(); ++row) {
            float expected = 0;
            for (float value : matrix.subspan(row * kRowLength, kRowLength)) {
                expected += value;
            }
            if (sums[row] != expected) {
                return WrongResult("row sums", row, sums[row], expected);
            }
        }
        return OkStatus();
    }
};

class Transpose : public KernelWorkload {
  public:
    explicit Transpose(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t side) {
        side_ = side;
        const size_t count = size_t{side} * side;
        FORNAX_RETURN_IF_ERROR(AddBuffer<float>(count));
        FORNAX_RETURN_IF_ERROR(AddBuffer<float>(count));
        for (uint32_t i = 0; i < count; ++i) {
            Data<float>(0)[i] = static_cast<float>(i);  // all different up to a side of 4,096
        }
        std::ranges::fill(Data<float>(1), -1.0f);
        return Prepare(spirv::kTranspose, side, {side / kTile, side / kTile});
    }

    Status Verify() override {
        const std::span<float> source = Data<float>(0);
        const std::span<float> destination = Data<float>(1);
        for (size_t row = 0; row < side_; ++row) {
            for (size_t column = 0; column < side_; ++column) {
                const size_t index = column * side_ + row;
                if (destination[index] != source[row * side_ + column]) {
                    return WrongResult("transpose", index, destination[index],
                                       source[row * side_ + column]);
                }
            }
        }
        return OkStatus();
    }

  private:
    static constexpr uint32_t kTile = 16;

    uint32_t side_ = 0;
};

class Histogram : public KernelWorkload {
  public:
    explicit Histogram(Device& device) : KernelWorkload(device) {}

    Status Init(uint32_t count) {
        const uint32_t parts = count / kHistogramPart;
        FORNAX_RETURN_IF_ERROR(AddBuffer<uint32_t>(count));
        FORNAX_RETURN_IF_ERROR(AddBuffer<uint32_t>(size_t{parts} * kBins));
        // The high bits of a multiplicative sequence: neighbours fall into different bins.
        for (uint32_t i = 0; i < count; ++i) {
            Data<uint32_t>(0)[i] = (i * 2654435761u ^ i * 40503u << 7) >> 13;
        }
        std::ranges::fill(Data<uint32_t>(1), UINT32_MAX);
        return Prepare(spirv::kHistogram, kHistogramPart, {parts, 1});
    }

    Status Verify() override {
        const std::span<uint32_t> data = Data<uint32_t>(0);
        const std::span<uint32_t> result = Data<uint32_t>(1);
        for (size_t part = 0; part * kBins < result.size(); ++part) {
            std::array<uint32_t, kBins> expected = {};
            for (uint32_t value : data.subspan(part * kHistogramPart, kHistogramPart)) {
                ++expected[value % kBins];
            }
            for (size_t bin = 0; bin < kBins; ++bin) {
                const size_t index = part * kBins + bin;
                if (result[index] != expected[bin]) {
                    return WrongResult("histogram", index, result[index], expected[bin]);
                }
            }
        }
        return OkStatus();
    }

  private:
    static constexpr size_t kBins = 256;
};

}  // namespace

WorkloadResult CreateSaxpy(Device& device, uint32_t count) {
    return CreateWorkload<Saxpy>(device, count);
}

WorkloadResult CreateCachedSaxpy(Device& device, uint32_t count) {
    return CreateWorkload<CachedSaxpy>(device, count);
}

WorkloadResult CreateCopy(Device& device, uint32_t size_bytes) {
    return CreateWorkload<Copy>(device, size_bytes);
}

WorkloadResult CreateRowSums(Device& device, uint32_t rows) {
    return CreateWorkload<RowSums>(device, rows);
}

WorkloadResult CreateHistogram(Device& device, uint32_t count) {
    return CreateWorkload<Histogram>(device, count);
}

WorkloadResult CreateTranspose(Device& device, uint32_t side) {
    return CreateWorkload<Transpose>(device, side);
}

}  // namespace fornax::bench

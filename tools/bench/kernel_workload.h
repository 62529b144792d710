// KernelWorkload: the workload that most others are, one kernel dispatched once or several times.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "tools/bench/workload.h"

namespace fornax::bench {

struct Grid {
    uint32_t x = 1;
    uint32_t y = 1;
};

// A derived class creates the buffers, fills them, calls Prepare, and implements Verify.
class KernelWorkload : public Workload {
  public:
    Status WarmUp() override;
    Result<double> Run() override;

  protected:
    explicit KernelWorkload(Device& device) : device_(device) {}

    // Adds a buffer, which becomes the kernel's next binding.
    template <typename T>
    Status AddBuffer(size_t count) {
        FORNAX_ASSIGN_OR_RETURN(Buffer buffer, device_.CreateBuffer(count * sizeof(T)));
        buffers_.push_back(std::move(buffer));
        return OkStatus();
    }

    template <typename T>
    std::span<T> Data(size_t binding) const {
        return buffers_[binding].As<T>();
    }

    // Creates the kernel and records `dispatches` dispatches of `grid`, with a barrier between each
    // two. `constants` are its push constants.
    template <typename Constants>
    Status Prepare(std::span<const uint32_t> spirv,
                   const Constants& constants,
                   Grid grid,
                   uint32_t dispatches = 1) {
        std::vector<uint8_t> bytes(sizeof constants);
        std::memcpy(bytes.data(), &constants, sizeof constants);
        return Prepare(spirv, bytes, grid, dispatches);
    }
    Status Prepare(std::span<const uint32_t> spirv, Grid grid, uint32_t dispatches) {
        return Prepare(spirv, std::vector<uint8_t>(), grid, dispatches);
    }

  private:
    Status Prepare(std::span<const uint32_t> spirv,
                   const std::vector<uint8_t>& constants,
                   Grid grid,
                   uint32_t dispatches);
    Result<VkCommandBuffer> Record(const std::vector<uint8_t>& constants,
                                   Grid grid,
                                   uint32_t dispatches);

    Device& device_;
    std::vector<Buffer> buffers_;
    Kernel kernel_;
    VkCommandBuffer warm_up_commands_ = VK_NULL_HANDLE;
    VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

// "saxpy: element 17 is 3 instead of 4." as an Error.
Error WrongResult(const char* workload, size_t index, double actual, double expected);

}  // namespace fornax::bench

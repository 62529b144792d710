// Runs SPIR-V kernels on the first device that the Vulkan loader offers, for tests and measurements
// of generated code. Which driver that is, VK_DRIVER_FILES says.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/loop/emit_spirv.h"
#include "runtime/vulkan/device.h"

namespace fornax::test {

// Not thread-safe.
class KernelRunner {
  public:
    static Result<std::unique_ptr<KernelRunner>> Open();

    std::string device_name() const { return device_->name(); }
    // What code may use; less than the device has, for tests of what it falls back to.
    graph::loop::Target& target() { return target_; }

    struct Dispatch {
        std::span<const uint32_t> words;
        std::array<uint32_t, 3> workgroups = {1, 1, 1};
        std::vector<uint32_t> push_constants;
    };
    // Runs the kernel once on copies of `buffers`, which get what it wrote. The bytes around each
    // buffer must stay what they are: if not, an error.
    Status Run(const Dispatch& dispatch, std::span<std::vector<uint8_t>> buffers);
    // The least times of one dispatch in ns, of `repeats` command buffers with two each: until the
    // fence is signalled, and of all of the process's threads together, which other processes do
    // not disturb as much.
    struct Timing {
        double wall_ns = 1e30;
        double cpu_ns = 1e30;
    };
    Result<Timing> Time(const Dispatch& dispatch,
                        std::span<std::vector<uint8_t>> buffers,
                        uint32_t repeats);

  private:
    struct Objects;
    explicit KernelRunner(std::shared_ptr<vulkan::Device> device);
    // Everything for `count` dispatches, one after the other, in one command buffer.
    Result<Objects> Record(const Dispatch& dispatch,
                           std::span<const std::vector<uint8_t>> buffers,
                           uint32_t count) const;

    std::shared_ptr<vulkan::Device> device_;
    graph::loop::Target target_;
};

// The sizes bound, as push constants and workgroups of a module.
Result<KernelRunner::Dispatch> DispatchOf(const graph::loop::Kernel& kernel,
                                          const graph::loop::Module& module,
                                          const graph::Bindings& sizes);

}  // namespace fornax::test

// A plan on a device of the HAL: its executables and constants. What the driver needs to play a
// plan itself, without Vulkan's objects.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "compiler/graph/loop/emit_spirv.h"
#include "compiler/graph/plan/plan.h"
#include "compiler/kernel/kernel_compiler.h"
#include "hal/device.h"
#include "runtime/plan/launches.h"

namespace fornax::runtime {

// What kernels may use on devices of the HAL, whatever the backend: what the kernel compiler makes
// of SPIR-V.
graph::loop::Target TargetOf(const hal::DeviceCapabilities& capabilities);

// Immutable, so safe to share between threads and command streams.
class HalProgram {
  public:
    // Makes the plan's kernels to executables, on all processors, and copies its constants to the
    // device's memory; the bytes in the plan go. `plan` is valid (graph::ValidatePlan), and without
    // host steps and strings, else kUnsupported.
    static Result<std::shared_ptr<const HalProgram>> Create(std::shared_ptr<hal::Device> device,
                                                            kernel::KernelCompiler& compiler,
                                                            graph::Plan plan);

    HalProgram(const HalProgram&) = delete;
    HalProgram& operator=(const HalProgram&) = delete;

    const graph::Plan& plan() const { return plan_; }
    std::span<const KernelInterface> kernels() const { return kernels_; }
    const std::shared_ptr<const hal::Executable>& executable(graph::KernelId id) const {
        return executables_[id.value()];
    }
    const LaunchLimits& limits() const { return limits_; }
    // Where a constant of at least a byte lies, as long as the program lives.
    uint64_t constant(graph::BlockId id) const { return constants_[id.value()]; }
    // What tensors without elements are bound to: kNothingBytes that nobody looks at.
    static constexpr uint64_t kNothingBytes = 256;
    uint64_t nothing() const { return memory_->address(); }

  private:
    HalProgram() = default;
    Status MakeExecutables(kernel::KernelCompiler& compiler);
    Status PlaceConstants();

    std::shared_ptr<hal::Device> device_;
    graph::Plan plan_;
    LaunchLimits limits_;
    std::vector<KernelInterface> kernels_;
    std::vector<std::shared_ptr<const hal::Executable>> executables_;  // by kernel
    std::shared_ptr<hal::Memory> memory_;                              // nothing, then constants
    std::vector<uint64_t> constants_;                                  // by block
};

}  // namespace fornax::runtime

// Executable: native code that the device can run as the kernel of a dispatch.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "hal/foresight.h"
#include "hal/kernel_abi.h"

namespace fornax::hal {

// What the device must know of a kernel. Device::CreateExecutable checks it against the limits.
struct KernelDesc {
    KernelEntry entry = nullptr;
    const void* context = nullptr;  // for the entry, as DispatchFrame::kernel_context
    std::array<uint32_t, 3> workgroup_size = {1, 1, 1};
    uint32_t shared_bytes = 0;         // workgroup memory
    uint32_t scratch_bytes = 0;        // per worker
    uint32_t push_constant_bytes = 0;  // a dispatch with fewer bytes bound is malformed
    uint32_t descriptor_set_mask = 0;  // bit n: uses set n; a dispatch without it is malformed
    // Workgroups never wait for each other, so the device may start them in any order. Otherwise it
    // starts them by increasing index.
    bool independent_workgroups = false;
    // The entry is nothing but computation on memory: it takes no locks, calls nobody and has
    // nothing to undo, so the device may leave it at any instruction when it faults or takes too
    // long. Otherwise WorkerFrame::stop_request is all that a watchdog can do.
    bool interruptible = false;
    // Words that the kernel counts in, where it was compiled to (WorkerFrame::region_counts).
    uint32_t region_counters = 0;
    // Told of dispatches that have been submitted; may be null. Lives as long as `code`.
    const Foresight* foresight = nullptr;
    std::string name;
    // Keeps the memory of `entry` mapped; may be null. The last reference may be dropped on a
    // thread of the device, so it must not own a Queue or Device.
    std::shared_ptr<const void> code;
};

// Immutable, so any thread may use it. Command streams retain the executables that they bind.
class Executable {
  public:
    explicit Executable(KernelDesc desc) : desc_(std::move(desc)) {}
    Executable(const Executable&) = delete;
    Executable& operator=(const Executable&) = delete;

    const KernelDesc& desc() const { return desc_; }

    // What one workgroup took lately, 0 before the first run. A hint that the device keeps for
    // itself to decide how many workers a grid is worth.
    std::atomic<uint32_t>& workgroup_cost_ns() const { return workgroup_cost_ns_; }

  private:
    KernelDesc desc_;
    mutable std::atomic<uint32_t> workgroup_cost_ns_{0};
};

}  // namespace fornax::hal

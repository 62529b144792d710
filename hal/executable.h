// Executable: native code that the device can run as the kernel of a dispatch.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "hal/kernel_abi.h"

namespace fornax::hal {

// What the device must know of a kernel. Device::CreateExecutable checks it against the limits.
struct KernelDesc {
    KernelEntry entry = nullptr;
    std::array<uint32_t, 3> workgroup_size = {1, 1, 1};
    uint32_t shared_bytes = 0;          // workgroup memory
    uint32_t scratch_bytes = 0;         // per worker
    uint32_t push_constant_bytes = 0;   // a dispatch with fewer bytes bound is malformed
    uint32_t descriptor_set_count = 0;  // highest set number used + 1; likewise
    std::string name;
    std::shared_ptr<const void> code;  // keeps the memory of `entry` mapped; may be null
};

// Immutable, so any thread may use it. Command streams retain the executables that they bind.
class Executable {
  public:
    explicit Executable(KernelDesc desc) : desc_(std::move(desc)) {}
    Executable(const Executable&) = delete;
    Executable& operator=(const Executable&) = delete;

    const KernelDesc& desc() const { return desc_; }

  private:
    KernelDesc desc_;
};

}  // namespace fornax::hal

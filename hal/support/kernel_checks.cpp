#include "hal/support/kernel_checks.h"

#include <fmt/format.h>

#include "hal/device.h"

namespace fornax::hal {

Status ValidateKernelDesc(const KernelDesc& desc) {
    const auto invalid = [&](std::string what) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("The kernel '{}' {}.", desc.name, what)};
    };
    if (desc.entry == nullptr) {
        return invalid("has no entry point");
    }
    uint64_t invocations = 1;
    for (int axis = 0; axis < 3; ++axis) {
        const uint32_t size = desc.workgroup_size[axis];
        if (size == 0 || size > kMaxWorkgroupSize[axis]) {
            return invalid(fmt::format("has a workgroup size of {} in {}; 1 to {} are possible",
                                       size, "xyz"[axis], kMaxWorkgroupSize[axis]));
        }
        invocations *= size;
    }
    if (invocations > kMaxWorkgroupInvocations) {
        return invalid(fmt::format("has {} invocations in a workgroup, more than {}", invocations,
                                   kMaxWorkgroupInvocations));
    }
    if (desc.shared_bytes > kMaxSharedBytes) {
        return invalid(fmt::format("needs {} bytes of shared memory, more than {}",
                                   desc.shared_bytes, kMaxSharedBytes));
    }
    if (desc.scratch_bytes > kMaxScratchBytes) {
        return invalid(fmt::format("needs {} bytes of scratch memory, more than {}",
                                   desc.scratch_bytes, kMaxScratchBytes));
    }
    if (desc.push_constant_bytes > kMaxPushConstantBytes) {
        return invalid(fmt::format("reads {} bytes of constants, more than {}",
                                   desc.push_constant_bytes, kMaxPushConstantBytes));
    }
    return OkStatus();
}

}  // namespace fornax::hal

// What a backend gets from the factory, and what backends share. Nothing above the HAL includes it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "hal/executable.h"

namespace fornax::hal {

// DeviceOptions with the environment and the machine's defaults filled in.
struct BackendOptions {
    uint32_t worker_count = 1;
    uint64_t heap_bytes = 0;
    uint64_t watchdog_ms = 0;  // 0: none
    bool catch_faults = true;  // false: a fault in a kernel ends the process
    std::function<void(const std::string&)> on_lost;
};

// Checks a kernel against the limits of hal/device.h.
Status ValidateKernelDesc(const KernelDesc& desc);

}  // namespace fornax::hal

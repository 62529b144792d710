// What a backend gets from the factory. Nothing above the HAL includes it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "hal/work_observer.h"

namespace fornax::hal {

// DeviceOptions with the environment and the machine's defaults filled in.
struct BackendOptions {
    uint32_t worker_count = 1;
    uint64_t heap_bytes = 0;
    uint64_t watchdog_ms = 0;  // 0: none
    bool catch_faults = true;  // false: a fault in a kernel ends the process
    bool guard = false;        // as HostHeap's
    std::function<void(const std::string&)> on_lost;
    std::shared_ptr<WorkObserver> observer;
};

}  // namespace fornax::hal

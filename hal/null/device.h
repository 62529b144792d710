// The null device: a minimal backend to start another one from.
//
// It takes everything that the HAL can express and carries out only what the host can see without
// data: timelines, events, timestamps and queries. Kernels, copies, fills and updates are accepted
// and not run (capabilities().executes is false), and packets are not checked. A queue is a thread
// with a list; a device that has hardware replaces that by its ring.
#pragma once

#include <memory>

#include "base/result.h"
#include "hal/backend.h"
#include "hal/device.h"

namespace fornax::hal::null {

Result<std::shared_ptr<Device>> CreateNullDevice(const BackendOptions& options);

}  // namespace fornax::hal::null

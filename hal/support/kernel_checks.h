// What every backend refuses of a kernel.
#pragma once

#include "base/result.h"
#include "hal/executable.h"

namespace fornax::hal {

// Checks a kernel against the limits of hal/device.h.
Status ValidateKernelDesc(const KernelDesc& desc);

}  // namespace fornax::hal

// What the user asked for with FORNAX_NPU and FORNAX_NPU_RECORDS: time of a described machine, and
// cost records of what a program did.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "hal/device.h"
#include "hal/matrix_unit.h"
#include "npu/description/description.h"

namespace fornax::driver {

class Instance;

struct NpuSettings {
    std::optional<npu::Description> machine;  // FORNAX_NPU
    std::string records;                      // FORNAX_NPU_RECORDS, a file; empty: none

    // Kernels count what they do.
    bool timed() const { return machine || !records.empty(); }
};

// An error is one sentence about the variable.
Result<NpuSettings> ReadNpuSettings(const Instance& instance);

// What a device says of itself on the described machine, where Vulkan lets it follow: never more
// than the device has.
void DescribeMachine(const npu::Description& machine, hal::DeviceCapabilities& capabilities);

// Whether the described machine's matrix units multiply them.
bool HasMma(const npu::Description& machine, const hal::MmaTypes& types);

}  // namespace fornax::driver

#include "driver/npu_settings.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/environment.h"
#include "driver/instance.h"
#include "npu/description/read.h"

namespace fornax::driver {

namespace {

// "maxComputeSharedMemorySize ... at least 16384" (Required Limits).
constexpr uint64_t kLeastSharedBytes = 16384;

npu::MatrixType TypeOf(hal::MatrixElement element) {
    switch (element) {
        case hal::MatrixElement::kF16:
            return npu::MatrixType::kF16;
        case hal::MatrixElement::kBF16:
            return npu::MatrixType::kBF16;
        case hal::MatrixElement::kF32:
            return npu::MatrixType::kF32;
        default:
            return npu::MatrixType::kInt8;
    }
}

}  // namespace

Result<NpuSettings> ReadNpuSettings(const Instance& instance) {
    NpuSettings settings;
    if (!instance.host_clock()) {
        FORNAX_ASSIGN_OR_RETURN(settings.machine, npu::DescriptionOfEnvironment());
    }
    settings.records = EnvironmentText("FORNAX_NPU_RECORDS").value_or("");
    return settings;
}

void DescribeMachine(const npu::Description& machine, hal::DeviceCapabilities& capabilities) {
    capabilities.name = fmt::format("{}, modelled", machine.name);
    capabilities.timestamp_period_ns = machine.Nanoseconds(1);
    capabilities.max_shared_bytes = static_cast<uint32_t>(
        std::clamp<uint64_t>(machine.scratchpad.bytes, kLeastSharedBytes,
                             std::max<uint64_t>(kLeastSharedBytes, capabilities.max_shared_bytes)));
}

bool HasMma(const npu::Description& machine, const hal::MmaTypes& types) {
    return machine.matrix.units > 0 && machine.matrix.rate(TypeOf(types.a)) > 0;
}

}  // namespace fornax::driver

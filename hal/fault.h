// What a device can tell of the fault that it was lost by, apart from the message.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "hal/kernel_abi.h"

namespace fornax::hal {

// Why a kernel was stopped.
struct FaultReport {
    // How memory was used at `address`.
    enum class Access : uint8_t { kNone, kRead, kWrite, kExecute };

    KernelFault kind = KernelFault::kNone;
    std::string message;  // a full sentence
    std::string kernel;   // the executable's name
    Access access = Access::kNone;
    // Where memory was accessed. The fault lies in [address, address + address_bytes): a power of
    // two, to which the address is aligned; 0 when the address is not known.
    uint64_t address = 0;
    uint64_t address_bytes = 0;
    uint64_t instruction_address = 0;  // 0 when it is not known
    // The first workgroup of those that the kernel worked on.
    std::array<uint32_t, 3> workgroup = {};
};

}  // namespace fornax::hal

// The entry point of libfornax_compiler.so, which holds a KernelBackend for the driver.
#pragma once

#include <cstdint>
#include <type_traits>

#include "compiler/kernel/backend/backend.h"

namespace fornax::kernel {

// What both libraries must have been built with alike; they are installed together, so a difference
// is an incomplete installation.
struct BackendInterface {
    uint32_t abi_version = hal::kKernelAbiVersion;
    uint32_t entry_version = kCacheEntryVersion;
    uint32_t request_bytes = sizeof(CompileRequest);
    uint32_t options_bytes = sizeof(CompileOptions);
    uint32_t binding_bytes = sizeof(BindingLayout);
    uint32_t target_bytes = sizeof(TargetInfo);
    uint32_t object_bytes = sizeof(CompiledObject);
    uint32_t kernel_bytes = sizeof(CompiledKernel);
    uint32_t explanation_bytes = sizeof(KernelExplanation);

    friend bool operator==(const BackendInterface&, const BackendInterface&) = default;
};

inline constexpr char kBackendFunction[] = "fornax_open_kernel_backend";

// Fills `backend` unless the caller's interface differs; false then.
using OpenBackendFunction = bool (*)(const BackendInterface& interface,
                                     std::shared_ptr<KernelBackend>& backend);

}  // namespace fornax::kernel

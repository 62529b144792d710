// The one function that libfornax_compiler.so exports.
#include "compiler/kernel/backend_interface.h"

extern "C" __attribute__((visibility("default"))) bool fornax_open_kernel_backend(
    const fornax::kernel::BackendInterface& interface,
    std::shared_ptr<fornax::kernel::KernelBackend>& backend) {
    if (!(interface == fornax::kernel::BackendInterface())) {
        return false;
    }
    backend = fornax::kernel::MakeKernelBackend();
    return true;
}

static_assert(
    std::is_same_v<decltype(&fornax_open_kernel_backend), fornax::kernel::OpenBackendFunction>);

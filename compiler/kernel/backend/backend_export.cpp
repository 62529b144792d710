// The one function that libfornax_compiler.so exports, and what keeps its static objects.
#include "compiler/kernel/backend/backend_interface.h"

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

// The linker has all calls of __cxa_atexit in the library come here (-Wl,--wrap), those for LLVM's
// static objects among them: nothing is destroyed at exit(), when a thread may be compiling in the
// background, and exit() does not have to wait for it (backend.cpp).
extern "C" int __wrap___cxa_atexit(void (*)(void*), void*, void*) {
    return 0;
}

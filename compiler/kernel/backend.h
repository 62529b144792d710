// The half of the kernel compiler that contains LLVM, the SPIR-V reader and the passes.
//
// In the driver it is a shared library of its own, opened when the first kernel is compiled
// (backend_library.cpp): mapping and relocating LLVM takes longer than starting the device, and a
// program whose kernels all come out of a cache never needs it. Tests and tools link it instead
// (backend_linked.cpp).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "compiler/kernel/cache_entry.h"
#include "compiler/kernel/kernel_compiler.h"

namespace fornax::kernel {

struct CompiledObject {
    CacheEntryFacts facts;
    std::vector<uint8_t> object;  // for LoadedObject
};

// Thread-safe.
class KernelBackend {
  public:
    virtual ~KernelBackend() = default;

    // A kernel's native code for the target. `key` names its stages for FORNAX_DUMP.
    virtual Result<CompiledObject> Compile(const CompileRequest& request,
                                           const TargetInfo& target,
                                           const Hash128& key) = 0;

    // A kernel whose entry interprets the IR as the reader made it (interpret/interpret.h). Its
    // code is the backend's, which must outlive it.
    virtual Result<std::shared_ptr<const CompiledKernel>> MakeInterpreted(
        const CompileRequest& request) = 0;
};

// The backend in this process (backend.cpp).
std::shared_ptr<KernelBackend> MakeKernelBackend();

// How a program comes by the backend: backend_library.cpp or backend_linked.cpp.
class BackendSource {
  public:
    static Result<BackendSource> Find();

    // What the backend's build is, for the keys of cached code; told without opening it. Empty if
    // it is part of this very file.
    const std::string& identity() const { return identity_; }
    // kNotFound or kInternal, with the reason, if there is none that fits.
    Result<std::shared_ptr<KernelBackend>> Open() const;

  private:
    std::string path_;
    std::string identity_;
};

}  // namespace fornax::kernel

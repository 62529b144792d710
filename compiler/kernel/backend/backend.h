// The half of the kernel compiler that contains LLVM, the SPIR-V reader and the passes.
//
// In the driver it is a shared library of its own, opened when the first kernel is compiled
// (backend_library.cpp): mapping and relocating LLVM takes longer than starting the device, and a
// program whose kernels all come out of a cache never needs it. Tests and tools link it instead
// (backend_linked.cpp).
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "compiler/kernel/cache/cache_entry.h"
#include "compiler/kernel/explain/explain.h"
#include "compiler/kernel/interface/compile_request.h"
#include "compiler/kernel/interface/compiled_kernel.h"
#include "compiler/kernel/interface/target_info.h"

namespace fornax::kernel {

struct CompiledObject;

// The optimized tier of a kernel that has the baseline tier already. The backend's, which must
// outlive it.
class PendingObject {
  public:
    virtual ~PendingObject() = default;
    // Once. Of the facts only scratch_bytes may differ. An error if the process is ending.
    virtual Result<CompiledObject> Finish() = 0;
};

struct CompiledObject {
    CacheEntryFacts facts;
    std::vector<uint8_t> object;            // for LoadedObject; empty: put off (CodeTime)
    std::unique_ptr<PendingObject> better;  // null: there is none
    // The processor time that `better` will probably take.
    std::chrono::nanoseconds better_takes{0};
};

// The baseline tier is several times faster to make and slower to run.
enum class CompileTier : uint8_t {
    kBaseline,               // only the baseline tier: to look for faults in either code generator
    kOptimized,              // only the optimized tier
    kBaselineThenOptimized,  // the baseline tier and a PendingObject, where that is worth it
};

// When a kernel gets its code.
enum class CodeTime : uint8_t {
    kNow,
    // Kernels with deciding words only get their facts, unless it is not certain that code can be
    // made of them. Their scratch_bytes are then enough for any code.
    kWhenBound,
};

// Thread-safe.
class KernelBackend {
  public:
    virtual ~KernelBackend() = default;

    // A kernel's native code for the target. `key` names its stages for FORNAX_DUMP.
    virtual Result<CompiledObject> Compile(const CompileRequest& request,
                                           const TargetInfo& target,
                                           const Hash128& key,
                                           CompileTier tier,
                                           CodeTime time) = 0;

    // A pipeline layout that the module fits, for tools that have no application to ask.
    virtual Result<ResourceLayout> LayoutOf(std::span<const uint32_t> spirv) = 0;

    // Compiles as well, and tells how and why; the code is thrown away.
    virtual Result<KernelExplanation> Explain(const CompileRequest& request,
                                              const TargetInfo& target) = 0;

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
    // The library in a folder, for a program that is not beside it.
    static Result<BackendSource> FindIn(const std::string& folder);

    // What the backend's build is, for the keys of cached code; told without opening it. Empty if
    // it is part of this very file.
    const std::string& identity() const { return identity_; }
    // kNotFound or kInternal, with the reason, if there is none that fits.
    Result<std::shared_ptr<KernelBackend>> Open() const;

  private:
    std::string path_;
    std::string identity_;
};

// Opens the backend when it is first asked for. Thread-safe. Of one process.
class LazyBackend {
  public:
    explicit LazyBackend(BackendSource source) : source_(std::move(source)) {}

    Result<std::shared_ptr<KernelBackend>> Get() {
        std::lock_guard lock(mutex_);
        if (!backend_) {
            FORNAX_ASSIGN_OR_RETURN(backend_, source_.Open());
        }
        return backend_;
    }

  private:
    const BackendSource source_;
    std::mutex mutex_;
    std::shared_ptr<KernelBackend> backend_;
};

}  // namespace fornax::kernel

// The kernel compiler's façade: a SPIR-V compute entry point in, native code for the host out.
//
// Independent of Vulkan's object types: the driver describes its pipeline layout with
// ResourceLayout. Thread safety: KernelCompiler may be used from any number of threads at once; a
// CompiledKernel is immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/kernel/interface/compile_request.h"
#include "compiler/kernel/interface/compiled_kernel.h"
#include "compiler/kernel/interface/target_info.h"

namespace fornax::kernel {

class KernelCompiler {
  public:
    // For the host's CPU. `cache_directory` is where native objects are kept ("" turns the disk
    // cache off). With FORNAX_KERNEL=interpret kernels are interpreted instead, slowly: results of
    // the same program without the code generator, to find out whose a wrong result is.
    static Result<std::unique_ptr<KernelCompiler>> Create(const std::string& cache_directory);
    virtual ~KernelCompiler() = default;

    // Whether the CPU that Create() compiles for has an instruction for dot products of bfloat16
    // (ir::Op::kBFloatDot2): they then cost half of what multiplications of f32 do.
    static bool HasBFloatDotProducts();

    // The key under which the request's native code is cached: SPIR-V, entry point, specialisation,
    // layout, options, target, ABI and build.
    virtual std::string Key(const CompileRequest& request) const = 0;

    // Compiles, or loads from the disk cache. Unsupported input gives kUnsupported with a sentence
    // that names the instruction; invalid SPIR-V gives kInvalidArgument. Bounded in time and
    // memory.
    virtual Result<std::shared_ptr<const CompiledKernel>> Compile(
        const CompileRequest& request) = 0;

    // Only looks into the disk cache: null when there is no entry. Never compiles.
    virtual Result<std::shared_ptr<const CompiledKernel>> Lookup(const CompileRequest& request) = 0;

    // Takes back CompiledKernel::serialized under its key, for data that came from an application.
    // The bytes are trusted only as far as their keyed digest proves that this machine wrote them.
    virtual Result<std::shared_ptr<const CompiledKernel>> Load(
        const std::string& key,
        std::span<const uint8_t> serialized) = 0;

    // The kernel, which was made of the request, as one that is compiled again for the formats and
    // samplers that its dispatches find bound. Compile and Lookup do that themselves; without
    // SPIR-V a kernel stays as it is.
    virtual std::shared_ptr<const CompiledKernel> Specialize(
        const CompileRequest&,
        std::shared_ptr<const CompiledKernel> kernel) {
        return kernel;
    }

    virtual const TargetInfo& target() const = 0;
};

}  // namespace fornax::kernel

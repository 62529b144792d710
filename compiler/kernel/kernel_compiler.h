// The kernel compiler's door: a SPIR-V compute entry point in, native code for the host out.
//
// Independent of Vulkan's object types: the driver describes its pipeline layout with
// ResourceLayout. Thread safety: KernelCompiler may be used from any number of threads at once; a
// CompiledKernel is immutable.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "compiler/kernel/resource_layout.h"
#include "hal/kernel_abi.h"

namespace fornax::kernel {

// One VkSpecializationMapEntry resolved to its bits. size_bytes is the application's (1, 2, 4 or
// 8).
struct SpecializationValue {
    uint32_t constant_id = 0;
    uint32_t size_bytes = 4;
    uint64_t bits = 0;
};

struct CompileOptions {
    // Storage and uniform buffer accesses outside the bound range read zero and discard writes.
    bool robust_buffer_access = false;
    // Offsets in buffers have 64 bits of range, as with the execution mode Shader64BitIndexingEXT.
    bool wide_indexing = false;
    // The SubgroupSize that the shader sees, a power of two.
    uint32_t subgroup_size = 32;
    // Where kernels leave what they print, and the words behind the header there
    // (compiler/kernel/debug_printf.h). 0: they print nothing.
    uint64_t printf_address = 0;
    uint32_t printf_words = 0;
};

// What a request may do with the disk cache.
enum class DiskUse : uint8_t { kReadAndWrite, kRead, kNone };

struct CompileRequest {
    std::span<const uint32_t> spirv;  // in host byte order; untrusted
    // Where there is no SPIR-V: SpirvDigest of it, which is enough to look a kernel up.
    std::optional<Hash128> spirv_digest = std::nullopt;
    std::string entry_point = "main";
    std::vector<SpecializationValue> specialization;
    ResourceLayout layout;
    CompileOptions options;
    DiskUse disk = DiskUse::kReadAndWrite;  // no part of the key
};

// What a module is known by. Two modules of one digest are taken for the same.
inline Hash128 SpirvDigest(std::span<const uint32_t> spirv) {
    return HashBytes(std::as_bytes(spirv));
}

// Native code of one kernel. Keeps its memory mapped while it lives. Better code may take the place
// of what the entry leads to at any time; what it computes stays the same.
class CompiledKernel {
  public:
    virtual ~CompiledKernel() = default;

    hal::KernelEntry entry = nullptr;
    const void* context = nullptr;  // what DispatchFrame::kernel_context must be
    std::array<uint32_t, 3> workgroup_size = {1, 1, 1};
    uint32_t shared_bytes = 0;
    uint32_t scratch_bytes = 0;
    uint32_t used_sets = 0;               // bit n: a dispatch needs descriptor set n
    bool independent_workgroups = false;  // none can wait for another one
    bool interruptible = false;           // as KernelDesc's: native code is
    std::string name;
    bool from_disk_cache = false;
    bool storable = true;  // Serialized may have something to give
    // The native object and the facts above, for VkPipelineCache: KernelCompiler::Load takes it
    // back. Empty for a kernel that cannot be stored. May wait for a compilation in the background;
    // what it refers to does not change afterwards.
    virtual const std::vector<uint8_t>& Serialized() const { return serialized; }

    std::vector<uint8_t> serialized;  // of kernels that are complete when they are made
};

// Facts about the machine that kernels are compiled for; FORNAX_CPU=<LLVM CPU name> replaces the
// host's.
struct TargetInfo {
    std::string cpu_name;
    std::string features;
    uint32_t vector_bits = 0;
};

class KernelCompiler {
  public:
    // For the host's CPU. `cache_directory` is where native objects are kept ("" turns the disk
    // cache off). With FORNAX_KERNEL=interpret kernels are interpreted instead, slowly: results of
    // the same program without the code generator, to find out whose a wrong result is.
    static Result<std::unique_ptr<KernelCompiler>> Create(const std::string& cache_directory);
    virtual ~KernelCompiler() = default;

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

    virtual const TargetInfo& target() const = 0;
};

}  // namespace fornax::kernel

// A shader stage as a block of bytes that the application keeps: what it was made of, and native
// code. For shader binaries (VK_EXT_shader_object) and pipeline binaries (VK_KHR_pipeline_binary).
//
// The SPIR-V is in it, so that a block is of use wherever this driver runs. The native code saves
// the compilation where its key is that of the same request on this machine, and where its digest,
// keyed with this user's secret, proves that this user's driver wrote it (KernelCompiler::Load).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <vulkan/vulkan_core.h>

#include "base/hash.h"
#include "base/result.h"
#include "compiler/kernel/interface/compile_request.h"
#include "compiler/kernel/interface/compiled_kernel.h"

namespace fornax::kernel {
class KernelCompiler;
}

namespace fornax::driver {

class Device;
class PipelineLayout;

// Rises with every change of the format; a driver reads what has its own version.
inline constexpr uint32_t kKernelBinaryVersion = 2;

// What the application said about a stage, as a copy of its own.
struct KernelSource {
    VkShaderStageFlagBits stage = VK_SHADER_STAGE_COMPUTE_BIT;
    std::vector<uint32_t> spirv;
    std::optional<Hash128> spirv_digest;  // where there was only an identifier of it
    std::string entry_point;
    std::vector<kernel::SpecializationValue> specialization;
    uint32_t subgroup_size = 0;
    bool wide_indexing = false;
    // With descriptor heaps, whose mappings come with the SPIR-V; else null.
    std::shared_ptr<const kernel::ResourceLayout> heap;

    // The request for this device and layout. Refers to the SPIR-V.
    kernel::CompileRequest MakeRequest(const Device& device,
                                       const PipelineLayout& layout,
                                       bool bounds) const;
};

struct KernelBinary {
    KernelSource source;
    std::string key;              // of the native code; empty where there is none
    std::vector<uint8_t> native;  // as CompiledKernel::Serialized gave it

    // The kernel of the request: by the native code if that is fit for it. Null where there is
    // nothing to load. Thread-safe.
    std::shared_ptr<const kernel::CompiledKernel> Load(kernel::KernelCompiler& compiler,
                                                       const kernel::CompileRequest& request) const;
};

// The same block for the same arguments. `key` and `kernel` may be empty and null. May wait for a
// compilation in the background.
std::vector<std::byte> WriteKernelBinary(const KernelSource& source,
                                         const std::string& key,
                                         const kernel::CompiledKernel* kernel);

// kDataLoss for what is damaged or was not written by this version of the format. The data may have
// any alignment.
Result<KernelBinary> ReadKernelBinary(std::span<const std::byte> data);

}  // namespace fornax::driver

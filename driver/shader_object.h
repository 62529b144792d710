// Shader object (VK_EXT_shader_object): a stage that is bound by itself, without a pipeline.
//
// Compute shaders hold a kernel. Shaders of graphics are kept with their code and never run: no
// command buffer of a device without a graphics queue may bind them
// (VUID-vkCmdBindShadersEXT-pShaders-08476 and its neighbours).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <vulkan/vulkan_core.h>

#include "driver/compute_kernel.h"
#include "driver/kernel_binary.h"
#include "driver/object.h"

namespace fornax::driver {

class Shader : public DeviceObject {
  public:
    using Handle = VkShaderEXT;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_SHADER_EXT;

    explicit Shader(Device& device) : DeviceObject(device, kObjectType) {}

    // VK_INCOMPATIBLE_SHADER_BINARY_EXT for binary code that this driver did not write.
    // `allocator` serves what is only needed meanwhile.
    VkResult Init(const VkShaderCreateInfoEXT& info, const Allocator& allocator);

    // What dispatches run; null for a stage of graphics.
    const ComputeKernel* kernel() const {
        return source_.stage == VK_SHADER_STAGE_COMPUTE_BIT ? &kernel_ : nullptr;
    }

    // vkGetShaderBinaryDataEXT. Thread-safe.
    VkResult GetBinary(size_t* size_bytes, void* data) const;

  private:
    VkResult ReadCode(const VkShaderCreateInfoEXT& info, std::optional<KernelBinary>& binary);
    VkResult Compile(const VkShaderCreateInfoEXT& info,
                     const std::optional<KernelBinary>& binary,
                     const Allocator& allocator);

    KernelSource source_;
    std::string key_;  // of the kernel
    std::shared_ptr<const kernel::CompiledKernel> compiled_;
    ComputeKernel kernel_;
};

}  // namespace fornax::driver

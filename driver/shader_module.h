// Shader module: the application's SPIR-V, kept until pipelines are made of it.
#pragma once

#include <span>

#include <vulkan/vulkan_core.h>

#include "driver/object.h"

namespace fornax::driver {

class ShaderModule : public DeviceObject {
  public:
    using Handle = VkShaderModule;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_SHADER_MODULE;

    // `trailing` memory for the code follows the object.
    ShaderModule(Device& device, const VkShaderModuleCreateInfo& info);

    std::span<const uint32_t> spirv() const {
        return TrailingOf<const uint32_t>(this, word_count_);
    }

  private:
    size_t word_count_;
};

}  // namespace fornax::driver

// Pipeline binary (VK_KHR_pipeline_binary): what a pipeline was made of and its native code, which
// the application keeps. A compute pipeline has one.
//
// The block of bytes is that of driver/kernel_binary.h: native code in it only runs when a keyed
// digest proves that this user's driver wrote it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <vulkan/vulkan_core.h>

#include "driver/object.h"

namespace fornax::driver {

// The key of a pipeline's binary; `kernel_key` is KernelCompiler's.
VkPipelineBinaryKeyKHR MakeBinaryKey(std::string_view kernel_key);

class PipelineBinary : public DeviceObject {
  public:
    using Handle = VkPipelineBinaryKHR;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_PIPELINE_BINARY_KHR;

    PipelineBinary(Device& device, const VkPipelineBinaryKeyKHR& key, std::vector<std::byte> block)
        : DeviceObject(device, kObjectType), key_(key), block_(std::move(block)) {}

    std::span<const std::byte> block() const { return block_; }

    // vkGetPipelineBinaryDataKHR.
    VkResult Get(VkPipelineBinaryKeyKHR& key, size_t* size_bytes, void* data) const;

  private:
    VkPipelineBinaryKeyKHR key_;
    std::vector<std::byte> block_;
};

}  // namespace fornax::driver

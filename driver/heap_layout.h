// Descriptor heaps (VK_EXT_descriptor_heap) as the kernel compiler is told of them: what a stage's
// variables are mapped to, in place of a pipeline layout.
#pragma once

#include <vulkan/vulkan_core.h>

#include "base/result.h"
#include "compiler/kernel/interface/resource_layout.h"

namespace fornax::driver {

class Device;

// All but the mappings.
kernel::ResourceLayout MakeHeapLayout();

// Whether the kernel compiler can be given it. For mappings of an application's and for those of
// binaries, which may be damaged.
Status CheckHeapLayout(const kernel::ResourceLayout& layout);

// Reads the VkShaderDescriptorSetAndBindingMappingInfoEXT in a stage's chain; without one there are
// no mappings. A failure of an embedded sampler's creation, or VK_SUCCESS.
VkResult ReadHeapLayout(Device& device, const void* stage_chain, kernel::ResourceLayout& layout);

}  // namespace fornax::driver

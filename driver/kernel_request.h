// From Vulkan's structures about a shader stage to the kernel compiler's request, for pipelines and
// shader objects alike.
#pragma once

#include <vector>

#include <vulkan/vulkan_core.h>

#include "compiler/kernel/interface/compile_request.h"

namespace fornax::driver {

class Device;

std::vector<kernel::SpecializationValue> ReadSpecialization(const VkSpecializationInfo* info);

// VkPipelineShaderStageRequiredSubgroupSizeCreateInfo of the chain, else the default. What is no
// power of two is refused by the compiler.
uint32_t SubgroupSizeOf(const void* stage_chain);

// Whether accesses outside of a buffer's range are caught where nothing says otherwise.
bool DefaultBounds(const Device& device);

// VkDevicePipelineBinaryInternalCacheControlKHR may forbid the driver's own cache.
kernel::DiskUse DiskUseOf(const Device& device);

// What the user asked for: lets the kernel count what it does, and print where it may have
// something to print.
void SetDeviceOptions(const Device& device, kernel::CompileRequest& request);

}  // namespace fornax::driver

// Features as applications query and enable them: VkPhysicalDeviceFeatures2 chains to and from the
// FeatureSet, for every feature structure of the registry alike.
#pragma once

#include <vulkan/vulkan_core.h>

#include "driver/object.h"
#include "driver/registry.h"

namespace fornax::driver {

void WriteFeatures(const FeatureSet& features, VkPhysicalDeviceFeatures& out);

// Fills the known structures of a chain; a structure of an extension or version that Fornax does
// not support becomes all false.
void WriteFeatureChain(const FeatureSet& features, void* chain);

// Collects the features that a VkDeviceCreateInfo enables. VK_ERROR_FEATURE_NOT_PRESENT, told with
// the feature's name, for one that is not supported (VUID-vkCreateDevice).
VkResult ReadEnabledFeatures(const Object& origin,
                             const VkDeviceCreateInfo& info,
                             FeatureSet& enabled);

}  // namespace fornax::driver

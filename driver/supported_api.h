// What Fornax supports: the one list of extensions and features that everything else is derived
// from (what is enumerated, what vkCreateInstance and vkCreateDevice accept, which commands are
// found).
#pragma once

#include <vulkan/vulkan_core.h>

#include "driver/registry.h"

namespace fornax::driver {

// The version of the API that instances and devices offer, with the patch of the headers.
inline constexpr uint32_t kApiVersion = VK_MAKE_API_VERSION(0, 1, 4, VK_HEADER_VERSION);

const ApiSet& SupportedApi();
const FeatureSet& SupportedFeatures();

}  // namespace fornax::driver

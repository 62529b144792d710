// How a Vulkan command is implemented: a definition that begins with FORNAX_ENTRY_POINT(return
// type), in namespace fornax::driver (fornax::icd for the sources there), with the command's own
// name:
//
//     FORNAX_ENTRY_POINT(void) vkDestroyBuffer(VkDevice device, ...) { ... }
//
// tools/codegen/gen_vulkan.py finds it, declares it in the folder's entry_points.h (so that a wrong
// signature does not link) and puts it, and its aliases, into the table of icd/. Which extensions
// and features are advertised is said in driver/supported_api.cpp.
#pragma once

#include <vulkan/vulkan_core.h>

#include "driver/entry_points.h"

#define FORNAX_ENTRY_POINT(return_type) VKAPI_ATTR return_type VKAPI_CALL

// What the loader calls.
#include "icd/icd.h"

#include <algorithm>

#include "icd/entry_point.h"
#include "icd/entry_points.h"

namespace {

// Version 5: the driver must not refuse an apiVersion that is newer than what it knows. Versions
// 6 and 7 only add a way to enumerate adapters of Windows and drivers handed over in memory.
constexpr uint32_t kNewestInterface = 7;
// Version 2: the loader asks for a version at all.
constexpr uint32_t kOldestInterface = 2;

}  // namespace

VkResult vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t* version) {
    if (*version < kOldestInterface) {
        return VK_ERROR_INCOMPATIBLE_DRIVER;
    }
    *version = std::min(*version, kNewestInterface);
    return VK_SUCCESS;
}

PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance, const char* name) {
    using Function = PFN_vkVoidFunction;
    // From version 7 on the loader may look these up instead of the library's symbols.
    const std::string_view wanted = name;
    if (wanted == "vk_icdNegotiateLoaderICDInterfaceVersion") {
        return reinterpret_cast<Function>(&vk_icdNegotiateLoaderICDInterfaceVersion);
    }
    if (wanted == "vk_icdGetPhysicalDeviceProcAddr") {
        return reinterpret_cast<Function>(&vk_icdGetPhysicalDeviceProcAddr);
    }
    return fornax::icd::vkGetInstanceProcAddr(instance, name);
}

// Tells the loader which commands it does not know take a physical device (interface version 4).
PFN_vkVoidFunction vk_icdGetPhysicalDeviceProcAddr(VkInstance instance, const char* name) {
    const auto* entry = fornax::icd::FindEntryPoint(name);
    if (!entry || entry->scope != fornax::icd::Scope::kPhysicalDevice) {
        return nullptr;
    }
    return fornax::icd::vkGetInstanceProcAddr(instance, name);
}

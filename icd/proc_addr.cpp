// Finding commands by name: vkGetInstanceProcAddr and vkGetDeviceProcAddr, as the tables of
// "Command Function Pointers" in the specification say.
#include <algorithm>

#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/instance.h"
#include "icd/entry_point.h"
#include "icd/entry_points.h"

namespace fornax::icd {

const EntryPoint* FindEntryPoint(std::string_view name) {
    const auto all = AllEntryPoints();
    const auto found = std::ranges::lower_bound(
        all, name, {}, [](const EntryPoint& entry) { return std::string_view(entry.name); });
    return found != all.end() && found->name == name ? &*found : nullptr;
}

FORNAX_ENTRY_POINT(PFN_vkVoidFunction)
vkGetInstanceProcAddr(VkInstance instance_handle, const char* name) {
    const EntryPoint* entry = FindEntryPoint(name);
    if (!entry) {
        return nullptr;
    }
    // The one command that is had with and without an instance.
    if (std::string_view(entry->name) == "vkGetInstanceProcAddr") {
        return entry->function;
    }
    const auto* instance = driver::FromHandle<driver::Instance>(instance_handle);
    if (!instance) {
        return entry->scope == Scope::kGlobal ? entry->function : nullptr;
    }
    if (entry->scope == Scope::kGlobal) {
        return nullptr;
    }
    // For device commands: "available device extensions", which an instance's ApiSet holds.
    return entry->available(instance->api()) ? entry->function : nullptr;
}

FORNAX_ENTRY_POINT(PFN_vkVoidFunction)
vkGetDeviceProcAddr(VkDevice device_handle, const char* name) {
    const EntryPoint* entry = FindEntryPoint(name);
    if (!entry || entry->scope != Scope::kDevice) {
        return nullptr;
    }
    return entry->available(driver::FromHandle<driver::Device>(device_handle)->api())
               ? entry->function
               : nullptr;
}

}  // namespace fornax::icd

// The table of all Vulkan commands, generated from vk.xml and the driver's sources. Its functions
// throw nothing (icd/guard.h).
#pragma once

#include <span>
#include <string_view>

#include <vulkan/vulkan_core.h>

#include "driver/registry.h"

namespace fornax::icd {

// What a command is called on; it decides where its function can be had.
enum class Scope : uint8_t { kGlobal, kInstance, kPhysicalDevice, kDevice };

struct EntryPoint {
    const char* name;
    Scope scope;
    // Whether what an instance or device has contains the command.
    bool (*available)(const driver::ApiSet& api);
    PFN_vkVoidFunction function;  // null: Fornax does not implement it
    bool absent;                  // answers with an error (driver/absent.h)
};

// Sorted by name.
std::span<const EntryPoint> AllEntryPoints();

// Null for a name that is no command.
const EntryPoint* FindEntryPoint(std::string_view name);

}  // namespace fornax::icd

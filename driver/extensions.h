// Enumerating and enabling extensions, for instances and devices alike.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "driver/chain.h"
#include "driver/registry.h"
#include "driver/report.h"

namespace fornax::driver {

template <typename Set>
VkResult EnumerateExtensions(std::span<const ExtensionInfo<Set>> all,
                             const Set& supported,
                             uint32_t* count,
                             VkExtensionProperties* properties) {
    const auto is_supported = [&](const auto& extension) { return supported.*extension.member; };
    const auto available = static_cast<uint32_t>(std::ranges::count_if(all, is_supported));
    auto next = all.begin();
    return WriteArray(available, count, properties, [&](VkExtensionProperties& out, uint32_t) {
        next = std::find_if(next, all.end(), is_supported);
        out = {.specVersion = next->spec_version};
        std::strncpy(out.extensionName, next->name, VK_MAX_EXTENSION_NAME_SIZE - 1);
        ++next;
    });
}

// Sets the members of `names` in `enabled`. A name may come twice (some applications do that).
template <typename Set>
VkResult EnableExtensions(const Object& origin,
                          std::span<const ExtensionInfo<Set>> all,
                          const Set& supported,
                          std::span<const char* const> names,
                          Set& enabled) {
    for (const std::string_view name : names) {
        const auto found = std::ranges::lower_bound(
            all, name, {}, [](const auto& extension) { return std::string_view(extension.name); });
        if (found == all.end() || found->name != name || !(supported.*found->member)) {
            return Fail(origin, VK_ERROR_EXTENSION_NOT_PRESENT,
                        "The extension {} was enabled, but Fornax does not support it.", name);
        }
        enabled.*found->member = true;
    }
    return VK_SUCCESS;
}

}  // namespace fornax::driver

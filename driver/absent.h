// Commands of core Vulkan that this device has no use for: it has no graphics queue, no sparse
// memory and no conversion of colour models. They must be found by name, so each answers with an
// error and a message. With FORNAX_COMPAT=graphics, which shows a graphics queue, the error is
// VK_ERROR_FEATURE_NOT_PRESENT, and vkEndCommandBuffer gives it for recorded commands.
// driver/absent.cpp lists them.
#pragma once

#include <type_traits>

#include <vulkan/vulkan_core.h>

#define FORNAX_ABSENT_ENTRY_POINT(name)

namespace fornax::driver {

// Told through the object that the command was called on.
VkResult FailAbsent(VkDevice device, const char* name);
VkResult FailAbsent(VkQueue queue, const char* name);
VkResult FailAbsent(VkCommandBuffer command_buffer, const char* name);

// Sets the handle that a vkCreate function would have made to null.
template <typename Last>
void ClearHandle(Last last) {
    if constexpr (std::is_pointer_v<Last>) {
        using Handle = std::remove_pointer_t<Last>;
        if constexpr (std::is_pointer_v<Handle> && !std::is_const_v<Handle>) {
            // An array may be left out to ask for its size.
            if (last) {
                *last = nullptr;
            }
        }
    }
}

// A function of the type of the command.
template <const char* kName, typename Function>
struct AbsentEntryPoint;

template <const char* kName, typename First, typename... Rest>
struct AbsentEntryPoint<kName, VkResult(VKAPI_PTR*)(First, Rest...)> {
    static VKAPI_ATTR VkResult VKAPI_CALL Call(First first, Rest... rest) {
        (ClearHandle(rest), ...);
        return FailAbsent(first, kName);
    }
};

template <const char* kName, typename First, typename... Rest>
struct AbsentEntryPoint<kName, void(VKAPI_PTR*)(First, Rest...)> {
    static VKAPI_ATTR void VKAPI_CALL Call(First first, Rest...) {
        // "Destroying" the null handle of a creation that failed is no use of anything.
        if constexpr (!IsDestroy()) {
            FailAbsent(first, kName);
        }
    }

  private:
    static constexpr bool IsDestroy() {
        constexpr const char* kPrefix = "vkDestroy";
        for (int i = 0; kPrefix[i]; ++i) {
            if (kName[i] != kPrefix[i]) {
                return false;
            }
        }
        return true;
    }
};

}  // namespace fornax::driver

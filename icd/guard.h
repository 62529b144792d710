// The edge that exceptions do not cross: every function of the table of commands is called through
// Guarded, which turns what the standard library throws when the host runs out of something into
// VK_ERROR_OUT_OF_HOST_MEMORY. Nothing else throws in Fornax. Recording commands, which return
// nothing, leave the error with their command buffer; others that return nothing do nothing.
#pragma once

#include <new>
#include <stdexcept>
#include <system_error>
#include <type_traits>

#include <vulkan/vulkan_core.h>

#include "driver/command_buffer.h"

namespace fornax::icd {

template <auto kFunction>
struct Guarded;

template <typename Return, typename... Parameters, Return(VKAPI_PTR* kFunction)(Parameters...)>
struct Guarded<kFunction> {
    static VKAPI_ATTR Return VKAPI_CALL Call(Parameters... parameters) {
        try {
            return kFunction(parameters...);
        } catch (const std::bad_alloc&) {
            return OutOfHostMemory(parameters...);
        } catch (const std::length_error&) {  // more elements than any memory holds
            return OutOfHostMemory(parameters...);
        } catch (const std::system_error&) {  // a thread or a lock could not be had
            return OutOfHostMemory(parameters...);
        }
    }

  private:
    template <typename First, typename... Rest>
    static Return OutOfHostMemory(First first, Rest...) {
        if constexpr (std::is_same_v<Return, VkResult>) {
            return VK_ERROR_OUT_OF_HOST_MEMORY;
        } else if constexpr (!std::is_void_v<Return>) {
            return Return{};
        } else if constexpr (std::is_same_v<First, VkCommandBuffer>) {
            driver::FailRecording(first, VK_ERROR_OUT_OF_HOST_MEMORY);
        }
    }
};

template <auto kFunction>
PFN_vkVoidFunction Guard() {
    return reinterpret_cast<PFN_vkVoidFunction>(&Guarded<kFunction>::Call);
}

}  // namespace fornax::icd

// Registering border colors for samplers that no object stands for.
#include "driver/border_colors.h"

#include <algorithm>

#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/limits.h"

namespace fornax::driver {

std::optional<uint32_t> BorderColors::Register() {
    const std::lock_guard lock(mutex_);
    while (first_free_ < registered_.size() && registered_[first_free_]) {
        ++first_free_;
    }
    if (first_free_ == kMaxDescriptors) {
        return std::nullopt;
    }
    if (first_free_ == registered_.size()) {
        registered_.push_back(false);
    }
    registered_[first_free_] = true;
    return first_free_++;
}

bool BorderColors::Register(uint32_t index) {
    const std::lock_guard lock(mutex_);
    // VUID-vkRegisterCustomBorderColorEXT-requestIndex-11287.
    if (index >= kMaxDescriptors || (index < registered_.size() && registered_[index])) {
        return false;
    }
    if (index >= registered_.size()) {
        registered_.resize(index + 1);
    }
    registered_[index] = true;
    return true;
}

void BorderColors::Unregister(uint32_t index) {
    const std::lock_guard lock(mutex_);
    if (index >= registered_.size()) {
        return;
    }
    registered_[index] = false;
    first_free_ = std::min(first_free_, index);
}

FORNAX_ENTRY_POINT(VkResult)
vkRegisterCustomBorderColorEXT(VkDevice handle,
                               const VkSamplerCustomBorderColorCreateInfoEXT*,
                               VkBool32 request_index,
                               uint32_t* index) {
    Device& device = *FromHandle<Device>(handle);
    if (request_index) {
        return device.border_colors().Register(*index) ? VK_SUCCESS
                                                       : VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS;
    }
    const auto registered = device.border_colors().Register();
    if (!registered) {
        return Fail(device, VK_ERROR_TOO_MANY_OBJECTS,
                    "All {} custom border colors that there may be are registered.",
                    kMaxDescriptors);
    }
    *index = *registered;
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void) vkUnregisterCustomBorderColorEXT(VkDevice device, uint32_t index) {
    FromHandle<Device>(device)->border_colors().Unregister(index);
}

}  // namespace fornax::driver

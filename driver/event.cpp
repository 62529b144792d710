// Events, from the host's side; the device's is in cmd_barrier.cpp.
#include "driver/event.h"

#include "driver/device.h"
#include "driver/entry_point.h"

namespace fornax::driver {

VkResult Event::Init() {
    return memory_.Allocate(sizeof(hal::EventCell));
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateEvent(VkDevice device,
              const VkEventCreateInfo*,
              const VkAllocationCallbacks* callbacks,
              VkEvent* event) {
    return CreateObject<Event>(device, callbacks, event);
}

FORNAX_ENTRY_POINT(void)
vkDestroyEvent(VkDevice device, VkEvent event, const VkAllocationCallbacks* callbacks) {
    DestroyObject<Event>(device, callbacks, event);
}

FORNAX_ENTRY_POINT(VkResult) vkGetEventStatus(VkDevice device, VkEvent event) {
    FORNAX_RETURN_IF_FAILED(FromHandle<Device>(device)->CheckLost());
    return hal::EventIsSet(FromHandle<Event>(event)->cell()) ? VK_EVENT_SET : VK_EVENT_RESET;
}

FORNAX_ENTRY_POINT(VkResult) vkSetEvent(VkDevice, VkEvent event) {
    hal::SetEvent(FromHandle<Event>(event)->cell());
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult) vkResetEvent(VkDevice, VkEvent event) {
    hal::ResetEvent(FromHandle<Event>(event)->cell());
    return VK_SUCCESS;
}

}  // namespace fornax::driver

// VK_KHR_deferred_host_operations: nothing that this device has is deferred, so each operation is
// done when it is asked about.
#include "driver/device.h"
#include "driver/entry_point.h"

namespace fornax::driver {
namespace {

class DeferredOperation : public DeviceObject {
  public:
    using Handle = VkDeferredOperationKHR;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_DEFERRED_OPERATION_KHR;

    explicit DeferredOperation(Device& device) : DeviceObject(device, kObjectType) {}
    VkResult Init() { return VK_SUCCESS; }
};

}  // namespace

FORNAX_ENTRY_POINT(VkResult)
vkCreateDeferredOperationKHR(VkDevice device,
                             const VkAllocationCallbacks* callbacks,
                             VkDeferredOperationKHR* operation) {
    return CreateObject<DeferredOperation>(device, callbacks, operation);
}

FORNAX_ENTRY_POINT(void)
vkDestroyDeferredOperationKHR(VkDevice device,
                              VkDeferredOperationKHR operation,
                              const VkAllocationCallbacks* callbacks) {
    DestroyObject<DeferredOperation>(device, callbacks, operation);
}

// "If no command has been deferred on the operation ... zero".
FORNAX_ENTRY_POINT(uint32_t)
vkGetDeferredOperationMaxConcurrencyKHR(VkDevice, VkDeferredOperationKHR) {
    return 0;
}

// "If no deferred command has been executed on the operation, VK_SUCCESS is returned."
FORNAX_ENTRY_POINT(VkResult)
vkGetDeferredOperationResultKHR(VkDevice, VkDeferredOperationKHR) {
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult) vkDeferredOperationJoinKHR(VkDevice, VkDeferredOperationKHR) {
    return VK_SUCCESS;
}

}  // namespace fornax::driver

// Each object keeps a short list of (slot, value): few applications use more than one slot.
#include "driver/private_data.h"

#include <mutex>

#include "driver/device.h"
#include "driver/entry_point.h"

namespace fornax::driver {

struct PrivateDataValue {
    uint64_t slot_id;
    uint64_t value;
    PrivateDataValue* next;
};

PrivateDataSlot::PrivateDataSlot(Device& device)
    : DeviceObject(device, kObjectType), id_(device.NextPrivateDataSlot()) {}

bool PrivateDataSlot::Set(DeviceObject& object, uint64_t value) {
    std::lock_guard lock(device().private_data_mutex());
    for (PrivateDataValue* entry = object.private_data_; entry; entry = entry->next) {
        if (entry->slot_id == id_) {
            entry->value = value;
            return true;
        }
    }
    auto* entry = device().allocator().New<PrivateDataValue>(
        VK_SYSTEM_ALLOCATION_SCOPE_OBJECT, 0, PrivateDataValue{id_, value, object.private_data_});
    if (!entry) {
        return false;
    }
    object.private_data_ = entry;
    return true;
}

uint64_t PrivateDataSlot::Get(const DeviceObject& object) const {
    std::lock_guard lock(device().private_data_mutex());
    for (PrivateDataValue* entry = object.private_data_; entry; entry = entry->next) {
        if (entry->slot_id == id_) {
            return entry->value;
        }
    }
    return 0;
}

void DeviceObject::ReleasePrivateData() {
    while (private_data_) {
        PrivateDataValue* entry = private_data_;
        private_data_ = entry->next;
        device_->allocator().Delete(entry);
    }
}

FORNAX_ENTRY_POINT(VkResult)
vkCreatePrivateDataSlot(VkDevice device_handle,
                        const VkPrivateDataSlotCreateInfo*,
                        const VkAllocationCallbacks* callbacks,
                        VkPrivateDataSlot* handle) {
    auto* slot = NewObject<PrivateDataSlot>(*FromHandle<Device>(device_handle), callbacks, 0);
    if (!slot) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    *handle = ToHandle(slot);
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkDestroyPrivateDataSlot(VkDevice device,
                         VkPrivateDataSlot slot,
                         const VkAllocationCallbacks* callbacks) {
    DestroyObject<PrivateDataSlot>(device, callbacks, slot);
}

// VUID-vkSetPrivateData-objectHandle-04016: the object is the device or belongs to it.
FORNAX_ENTRY_POINT(VkResult)
vkSetPrivateData(VkDevice device,
                 VkObjectType,
                 uint64_t object_bits,
                 VkPrivateDataSlot slot,
                 uint64_t value) {
    auto& object = *static_cast<DeviceObject*>(Object::FromBits(object_bits));
    if (!FromHandle<PrivateDataSlot>(slot)->Set(object, value)) {
        return FailOutOfHostMemory(*FromHandle<Device>(device));
    }
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkGetPrivateData(VkDevice,
                 VkObjectType,
                 uint64_t object_bits,
                 VkPrivateDataSlot slot,
                 uint64_t* value) {
    const auto& object = *static_cast<DeviceObject*>(Object::FromBits(object_bits));
    *value = FromHandle<PrivateDataSlot>(slot)->Get(object);
}

}  // namespace fornax::driver

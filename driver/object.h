// What all Vulkan objects share: the loader's slot, a checked type, a debug name and private data.
//
// Every handle, dispatchable or not, is the address of an Object. Derived classes have Object as
// their only base with data, no virtual functions, and two members that tie them to their handle:
//
//     using Handle = VkBuffer;
//     static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_BUFFER;
//
// Ownership: an object belongs to the application from its vkCreate to its vkDestroy, which use
// NewObject and DeleteObject below. Threads: as the specification says of each command
// ("Host Synchronization"); objects lock only what it leaves unsynchronised.
#pragma once

#include <cassert>
#include <cstdint>

#include <vulkan/vulkan_core.h>
// vk_icd.h wants the platform-independent declarations first.
#include <vulkan/vk_icd.h>

#include "driver/allocator.h"

namespace fornax::driver {

class Device;
class Instance;
struct PrivateDataValue;

class Object {
  public:
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;

    VkObjectType object_type() const { return type_; }
    Instance& instance() const { return *instance_; }

    // The name given with vkSetDebugUtilsObjectNameEXT, or null.
    const char* debug_name() const { return debug_name_; }

    // The handle's bits, as debug utils and private data name objects.
    uint64_t handle_bits() const { return reinterpret_cast<uintptr_t>(this); }
    static Object* FromBits(uint64_t bits) {
        return reinterpret_cast<Object*>(static_cast<uintptr_t>(bits));
    }

  protected:
    Object(Instance& instance, VkObjectType type) : type_(type), instance_(&instance) {
        set_loader_magic_value(&loader_data_);
    }
    ~Object();

  private:
    friend class DebugNames;

    VK_LOADER_DATA loader_data_;  // first: the loader keeps its dispatch table here
    VkObjectType type_;
    Instance* instance_;
    char* debug_name_ = nullptr;  // the instance's allocator owns it
};

// An object that belongs to a device.
class DeviceObject : public Object {
  public:
    Device& device() const { return *device_; }

  protected:
    DeviceObject(Device& device, VkObjectType type);
    // For the device itself.
    DeviceObject(Instance& instance, Device& device, VkObjectType type)
        : Object(instance, type), device_(&device) {}
    ~DeviceObject() { ReleasePrivateData(); }

    void ReleasePrivateData();

  private:
    friend class PrivateDataSlot;

    Device* device_;
    PrivateDataValue* private_data_ = nullptr;  // a list; see private_data.cpp
};

// Null gives null. Debug builds notice a handle of another type.
template <typename T>
T* FromHandle(typename T::Handle handle) {
    auto* object = reinterpret_cast<Object*>(handle);
    assert((!object || object->object_type() == T::kObjectType) && "A handle has the wrong type.");
    return static_cast<T*>(object);
}

template <typename T>
typename T::Handle ToHandle(T* object) {
    return reinterpret_cast<typename T::Handle>(static_cast<Object*>(object));
}

}  // namespace fornax::driver

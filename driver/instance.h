// Instance: the root of an application's use of Fornax. Holds what it enabled, who listens to
// messages, and the one physical device.
#pragma once

#include <vector>

#include <vulkan/vulkan_core.h>

#include "base/per_process.h"
#include "driver/allocator.h"
#include "driver/debug_utils.h"
#include "driver/object.h"
#include "driver/registry.h"

namespace fornax::driver {

class Device;
class PhysicalDevice;

class Instance : public Object {
  public:
    using Handle = VkInstance;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_INSTANCE;

    explicit Instance(const Allocator& allocator)
        : Object(*this, kObjectType), allocator_(allocator) {}
    ~Instance();

    VkResult Init(const VkInstanceCreateInfo& info);

    const Allocator& allocator() const { return allocator_; }
    DebugMessengers& messengers() { return messengers_; }

    // The version that the application asked for, at most ours, and the extensions it enabled.
    // The device's part is what the physical device supports.
    const ApiSet& api() const { return api_; }

    // The application wants the host's clock whatever FORNAX_NPU says.
    bool host_clock() const { return host_clock_; }

    // Made when it is first asked for, so that an instance costs nothing else.
    VkResult GetPhysicalDevice(PhysicalDevice** physical_device);

    // The devices that live: an application may destroy its instance and never them, and then their
    // threads must end. Throws std::bad_alloc.
    void AddDevice(Device& device);
    void RemoveDevice(Device& device);

  private:
    Allocator allocator_;
    ApiSet api_;
    bool host_clock_ = false;
    DebugMessengers messengers_;
    ProcessMutex mutex_;  // guards the creation of physical_device_
    PhysicalDevice* physical_device_ = nullptr;
    ProcessMutex devices_mutex_;
    std::vector<Device*> devices_;
};

}  // namespace fornax::driver

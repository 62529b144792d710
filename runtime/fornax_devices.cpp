// The devices of the Vulkan loader through the C interface.
#include <algorithm>
#include <cstring>

#include "runtime/fornax_objects.h"
#include "runtime/vulkan/instance.h"

namespace fornax::runtime {
namespace {

static_assert(FORNAX_DEVICE_CPU == static_cast<int>(VK_PHYSICAL_DEVICE_TYPE_CPU));
static_assert(sizeof(fornax_device::name) == VK_MAX_PHYSICAL_DEVICE_NAME_SIZE);

uint64_t LargestHeap(const vulkan::Instance& instance, VkPhysicalDevice device) {
    VkPhysicalDeviceMemoryProperties memory;
    instance.vk().vkGetPhysicalDeviceMemoryProperties(device, &memory);
    uint64_t largest = 0;
    for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
        largest = std::max<uint64_t>(largest, memory.memoryHeaps[i].size);
    }
    return largest;
}

fornax_device Describe(const vulkan::Instance& instance, VkPhysicalDevice device) {
    const VkPhysicalDeviceProperties properties = instance.PropertiesOf(device);
    fornax_device described = {};
    std::memcpy(described.name, properties.deviceName, sizeof described.name);
    described.type = static_cast<fornax_device_type>(properties.deviceType);
    described.vulkan_major = VK_API_VERSION_MAJOR(properties.apiVersion);
    described.vulkan_minor = VK_API_VERSION_MINOR(properties.apiVersion);
    described.memory_bytes = LargestHeap(instance, device);
    return described;
}

}  // namespace
}  // namespace fornax::runtime

using namespace fornax;
using namespace fornax::runtime;

fornax_status fornax_devices(fornax_device* devices, size_t capacity, size_t* count) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_NULL(count);
        if (capacity != 0) {
            FORNAX_RETURN_IF_NULL(devices);
        }
        FORNAX_ASSIGN_OR_RETURN(const std::shared_ptr<const vulkan::Instance> instance,
                                vulkan::Instance::Create());
        const std::vector<VkPhysicalDevice> found = instance->PhysicalDevices();
        for (size_t i = 0; i < std::min(capacity, found.size()); ++i) {
            devices[i] = Describe(*instance, found[i]);
        }
        *count = found.size();
        return OkStatus();
    });
}

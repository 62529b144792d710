// What `fornax info` prints about one Vulkan device.
#pragma once

#include <string>
#include <vector>

#include <volk.h>

namespace fornax::tool {

// A feature that matters to compute programs, and whether the device has it.
struct FeatureState {
    std::string name;  // its member name in the specification
    bool is_supported;
};

// "Integrated GPU", "CPU", ...
const char* DeviceTypeName(VkPhysicalDeviceType type);

// "1.3.230"
std::string FormatVersion(uint32_t version);

// Extensions of the device, sorted by name.
std::vector<VkExtensionProperties> DeviceExtensions(VkPhysicalDevice device);

bool HasExtension(const std::vector<VkExtensionProperties>& extensions, const char* name);

// Asks only for structures that the device's version or extensions define.
std::vector<FeatureState> ComputeFeatures(VkPhysicalDevice device,
                                          uint32_t api_version,
                                          const std::vector<VkExtensionProperties>& extensions);

// Every table about the device. Needs a device of Vulkan 1.1 or later, whose instance-level
// functions volk has loaded.
std::string DescribeDevice(VkPhysicalDevice device);

}  // namespace fornax::tool

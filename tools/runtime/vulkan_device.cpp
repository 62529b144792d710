// Opening the loader, choosing a device, creating it.
#include "tools/runtime/vulkan_device.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

namespace fornax::runtime {
namespace {

std::vector<VkPhysicalDevice> Devices(VkInstance instance) {
    uint32_t count = 0;
    if (vkEnumeratePhysicalDevices(instance, &count, nullptr) != VK_SUCCESS) {
        return {};
    }
    std::vector<VkPhysicalDevice> devices(count);
    vkEnumeratePhysicalDevices(instance, &count, devices.data());
    devices.resize(count);
    return devices;
}

VkPhysicalDeviceProperties PropertiesOf(VkPhysicalDevice device) {
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(device, &properties);
    return properties;
}

bool HasExtension(VkPhysicalDevice device, std::string_view name) {
    uint32_t count = 0;
    if (vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr) != VK_SUCCESS) {
        return false;
    }
    std::vector<VkExtensionProperties> extensions(count);
    vkEnumerateDeviceExtensionProperties(device, nullptr, &count, extensions.data());
    return std::any_of(extensions.begin(), extensions.end(),
                       [&](const VkExtensionProperties& e) { return name == e.extensionName; });
}

// The number that the whole text is, or nothing below 0.
int ToIndex(const std::string& text) {
    int index = -1;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, index);
    return parsed.ec == std::errc() && parsed.ptr == end ? index : -1;
}

}  // namespace

std::string ResultName(VkResult result) {
    switch (result) {
        case VK_ERROR_OUT_OF_HOST_MEMORY:
            return "VK_ERROR_OUT_OF_HOST_MEMORY";
        case VK_ERROR_OUT_OF_DEVICE_MEMORY:
            return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
        case VK_ERROR_INITIALIZATION_FAILED:
            return "VK_ERROR_INITIALIZATION_FAILED";
        case VK_ERROR_DEVICE_LOST:
            return "VK_ERROR_DEVICE_LOST";
        case VK_ERROR_MEMORY_MAP_FAILED:
            return "VK_ERROR_MEMORY_MAP_FAILED";
        case VK_ERROR_INCOMPATIBLE_DRIVER:
            return "VK_ERROR_INCOMPATIBLE_DRIVER";
        case VK_ERROR_FEATURE_NOT_PRESENT:
            return "VK_ERROR_FEATURE_NOT_PRESENT";
        case VK_ERROR_EXTENSION_NOT_PRESENT:
            return "VK_ERROR_EXTENSION_NOT_PRESENT";
        case VK_ERROR_UNKNOWN:
            return "VK_ERROR_UNKNOWN";
        case VK_TIMEOUT:
            return "VK_TIMEOUT";
        default:
            return fmt::format("VkResult {}", static_cast<int>(result));
    }
}

Error VulkanError(const char* function, VkResult result) {
    ErrorCode code = ErrorCode::kInternal;
    if (result == VK_ERROR_DEVICE_LOST) {
        code = ErrorCode::kDeviceLost;
    } else if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY) {
        code = ErrorCode::kOutOfDeviceMemory;
    } else if (result == VK_ERROR_OUT_OF_HOST_MEMORY) {
        code = ErrorCode::kOutOfHostMemory;
    }
    return {code, fmt::format("{} returned {}.", function, ResultName(result))};
}

Result<std::unique_ptr<VulkanDevice>> VulkanDevice::Open(const std::string& choice) {
    std::unique_ptr<VulkanDevice> device(new VulkanDevice);
    FORNAX_RETURN_IF_ERROR(device->CreateInstance());
    FORNAX_RETURN_IF_ERROR(device->Choose(choice));
    FORNAX_RETURN_IF_ERROR(device->CreateDevice());
    return device;
}

VulkanDevice::~VulkanDevice() {
    if (device_ != VK_NULL_HANDLE) {
        vkDeviceWaitIdle(device_);
        vkDestroyDevice(device_, nullptr);
    }
    if (instance_ != VK_NULL_HANDLE) {
        vkDestroyInstance(instance_, nullptr);
    }
}

Status VulkanDevice::CreateInstance() {
    if (volkInitialize() != VK_SUCCESS) {
        return Error{ErrorCode::kNotFound,
                     "The Vulkan loader libvulkan.so.1 is not installed; on Debian its package is "
                     "libvulkan1."};
    }
    if (volkGetInstanceVersion() < VK_API_VERSION_1_1) {
        return Error{ErrorCode::kUnsupported,
                     "The Vulkan loader is of version 1.0; version 1.1 or later is needed."};
    }
    VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.pApplicationName = "fornax";
    application.apiVersion = VK_API_VERSION_1_3;
    VkInstanceCreateInfo create_info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    create_info.pApplicationInfo = &application;
    const VkResult result = vkCreateInstance(&create_info, nullptr, &instance_);
    if (result != VK_SUCCESS) {
        return Error{ErrorCode::kNotFound,
                     fmt::format("The Vulkan loader found no usable driver: vkCreateInstance "
                                 "returned {}.",
                                 ResultName(result))};
    }
    volkLoadInstanceOnly(instance_);
    return OkStatus();
}

Status VulkanDevice::Choose(const std::string& choice) {
    const std::vector<VkPhysicalDevice> devices = Devices(instance_);
    if (devices.empty()) {
        return Error{ErrorCode::kNotFound, "The Vulkan loader offers no device."};
    }
    const int index = ToIndex(choice);
    const std::string wanted = choice.empty() ? "Fornax" : choice;
    std::string list;
    for (size_t i = 0; i < devices.size() && physical_ == VK_NULL_HANDLE; ++i) {
        const std::string name = PropertiesOf(devices[i]).deviceName;
        if (index >= 0 ? static_cast<size_t>(index) == i : name.find(wanted) != std::string::npos) {
            physical_ = devices[i];
        }
        fmt::format_to(std::back_inserter(list), "{}{} {}", list.empty() ? "" : ", ", i, name);
    }
    if (physical_ == VK_NULL_HANDLE && choice.empty()) {
        physical_ = devices[0];
    }
    if (physical_ == VK_NULL_HANDLE) {
        return Error{ErrorCode::kNotFound,
                     fmt::format("There is no Vulkan device {}; there are: {}.", choice, list)};
    }
    properties_ = PropertiesOf(physical_);
    if (properties_.apiVersion < VK_API_VERSION_1_1) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The device {} only has Vulkan 1.0; 1.1 is needed.", name())};
    }
    vkGetPhysicalDeviceMemoryProperties(physical_, &memory_);
    return OkStatus();
}

Status VulkanDevice::CreateDevice() {
    uint32_t count = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
    queue_family_ = count;
    for (uint32_t i = 0; i < count && queue_family_ == count; ++i) {
        if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) {
            queue_family_ = i;
        }
    }
    if (queue_family_ == count) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The device {} has no queue that can compute.", name())};
    }
    timestamp_bits_ = families[queue_family_].timestampValidBits;

    const float priority = 1;
    VkDeviceQueueCreateInfo queue_info = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue_info.queueFamilyIndex = queue_family_;
    queue_info.queueCount = 1;
    queue_info.pQueuePriorities = &priority;
    VkDeviceCreateInfo device_info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    device_info.queueCreateInfoCount = 1;
    device_info.pQueueCreateInfos = &queue_info;
    const char* const feedback = VK_EXT_PIPELINE_CREATION_FEEDBACK_EXTENSION_NAME;
    if (properties_.apiVersion >= VK_API_VERSION_1_3) {
        has_creation_feedback_ = true;
    } else if (HasExtension(physical_, feedback)) {
        has_creation_feedback_ = true;
        device_info.enabledExtensionCount = 1;
        device_info.ppEnabledExtensionNames = &feedback;
    }
    const VkResult result = vkCreateDevice(physical_, &device_info, nullptr, &device_);
    if (result != VK_SUCCESS) {
        return VulkanError("vkCreateDevice", result);
    }
    volkLoadDevice(device_);
    vkGetDeviceQueue(device_, queue_family_, 0, &queue_);
    return OkStatus();
}

Result<uint32_t> VulkanDevice::HostMemoryType(uint32_t allowed_types) const {
    constexpr VkMemoryPropertyFlags kNeeded =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    for (VkMemoryPropertyFlags wanted : {kNeeded | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, kNeeded}) {
        for (uint32_t i = 0; i < memory_.memoryTypeCount; ++i) {
            if ((allowed_types >> i & 1) != 0 &&
                (memory_.memoryTypes[i].propertyFlags & wanted) == wanted) {
                return i;
            }
        }
    }
    // Vulkan 11.2.1 promises such a type for every buffer that is not protected.
    return Error{ErrorCode::kUnsupported,
                 fmt::format("The device {} has no memory that the host can map.", name())};
}

}  // namespace fornax::runtime

// An instance and a device for tests, had through vk_icdGetInstanceProcAddr as a program without a
// loader would. Tests call Vulkan through volk's global function pointers.
#pragma once

#include <gtest/gtest.h>
#include <volk.h>

#include <string>
#include <vector>

// As the loader declares it: the driver does not know the library that it becomes part of.
extern "C" VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vk_icdGetInstanceProcAddr(VkInstance instance,
                                                                              const char* name);

namespace fornax::driver_test {

struct TestDeviceOptions {
    std::vector<const char*> instance_extensions = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
    std::vector<const char*> device_extensions;
    const void* device_chain = nullptr;
    uint32_t api_version = VK_API_VERSION_1_1;
    const VkAllocationCallbacks* callbacks = nullptr;
};

class TestDevice : public ::testing::Test {
  public:
    // Without a device when `device` is not VK_SUCCESS.
    void CreateAll(const TestDeviceOptions& options = {}) {
        ASSERT_EQ(CreateInstance(options), VK_SUCCESS);
        ASSERT_EQ(CreateDevice(options), VK_SUCCESS);
    }

    VkResult CreateInstance(const TestDeviceOptions& options = {}) {
        volkInitializeCustom(vk_icdGetInstanceProcAddr);
        callbacks_ = options.callbacks;
        const VkApplicationInfo application{
            .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
            .apiVersion = options.api_version,
        };
        const VkInstanceCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
            .pApplicationInfo = &application,
            .enabledExtensionCount = static_cast<uint32_t>(options.instance_extensions.size()),
            .ppEnabledExtensionNames = options.instance_extensions.data(),
        };
        const VkResult result = vkCreateInstance(&info, callbacks_, &instance_);
        if (result == VK_SUCCESS) {
            volkLoadInstance(instance_);
        }
        return result;
    }

    VkResult CreateDevice(const TestDeviceOptions& options = {}) {
        uint32_t count = 1;
        const VkResult found = vkEnumeratePhysicalDevices(instance_, &count, &physical_device_);
        if (found != VK_SUCCESS) {
            return found;
        }
        const float priority = 1;
        const VkDeviceQueueCreateInfo queue_info{
            .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
            .queueCount = 1,
            .pQueuePriorities = &priority,
        };
        const VkDeviceCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
            .pNext = options.device_chain,
            .queueCreateInfoCount = 1,
            .pQueueCreateInfos = &queue_info,
            .enabledExtensionCount = static_cast<uint32_t>(options.device_extensions.size()),
            .ppEnabledExtensionNames = options.device_extensions.data(),
        };
        const VkResult result = vkCreateDevice(physical_device_, &info, callbacks_, &device_);
        if (result == VK_SUCCESS) {
            vkGetDeviceQueue(device_, 0, 0, &queue_);
        }
        return result;
    }

    void DestroyAll() {
        if (device_) {
            vkDestroyDevice(device_, callbacks_);
        }
        if (instance_) {
            vkDestroyInstance(instance_, callbacks_);
        }
        device_ = VK_NULL_HANDLE;
        instance_ = VK_NULL_HANDLE;
    }

  protected:
    void TearDown() override { DestroyAll(); }

    VkInstance instance_ = VK_NULL_HANDLE;
    VkPhysicalDevice physical_device_ = VK_NULL_HANDLE;
    VkDevice device_ = VK_NULL_HANDLE;
    VkQueue queue_ = VK_NULL_HANDLE;
    const VkAllocationCallbacks* callbacks_ = nullptr;
};

}  // namespace fornax::driver_test

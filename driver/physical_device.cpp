// The physical device, and the queries about features and memory.
#include "driver/physical_device.h"

#include <algorithm>
#include <cstring>

#include "base/disk_cache.h"
#include "compiler/kernel/kernel_compiler.h"
#include "driver/chain.h"
#include "driver/entry_point.h"
#include "driver/extensions.h"
#include "driver/features.h"
#include "driver/npu_settings.h"
#include "driver/report.h"
#include "driver/supported_api.h"

namespace fornax::driver {

PhysicalDevice::PhysicalDevice(Instance& instance) : Object(instance, kObjectType) {}

PhysicalDevice::~PhysicalDevice() = default;

VkResult PhysicalDevice::Init() {
    auto device = hal::CreateDevice("");
    if (!device) {
        // Which backend there is depends on the environment, so this is no bug.
        return FailWith(*this, VK_ERROR_INITIALIZATION_FAILED, device.error().message);
    }
    hal_ = std::move(*device);
    auto settings = ReadNpuSettings(instance());
    if (!settings) {
        return FailWith(*this, VK_ERROR_INITIALIZATION_FAILED, settings.error().message);
    }
    capabilities_ = hal_->capabilities();
    machine_ = std::move(settings->machine);
    if (machine_) {
        DescribeMachine(*machine_, capabilities_);
    }
    return MakeProperties(*this, capabilities(), properties_);
}

std::atomic<uint64_t>& PhysicalDevice::allocated_bytes() {
    static constinit std::atomic<uint64_t> bytes = 0;
    return bytes;
}

Result<kernel::KernelCompiler*> PhysicalDevice::compiler() {
    std::lock_guard lock(compiler_mutex_);
    if (compiler_mutex_.TakeAbandoned()) {
        (void)compiler_.release();  // of the parent process, which was making it
    }
    if (!compiler_) {
        const auto directory = CacheDirectory();
        if (!directory) {
            Warn(*this, "Kernels are not cached on disk: " + directory.error().message);
        }
        FORNAX_ASSIGN_OR_RETURN(
            compiler_, kernel::KernelCompiler::Create(directory ? *directory : std::string()));
    }
    return compiler_.get();
}

FORNAX_ENTRY_POINT(void)
vkGetPhysicalDeviceFeatures(VkPhysicalDevice, VkPhysicalDeviceFeatures* features) {
    WriteFeatures(SupportedFeatures(), *features);
}

FORNAX_ENTRY_POINT(void)
vkGetPhysicalDeviceFeatures2(VkPhysicalDevice, VkPhysicalDeviceFeatures2* features) {
    WriteFeatures(SupportedFeatures(), features->features);
    WriteFeatureChain(SupportedFeatures(), features->pNext);
}

FORNAX_ENTRY_POINT(VkResult)
vkEnumerateDeviceExtensionProperties(VkPhysicalDevice,
                                     const char* layer,
                                     uint32_t* count,
                                     VkExtensionProperties* properties) {
    if (layer) {
        return VK_ERROR_LAYER_NOT_PRESENT;
    }
    return EnumerateExtensions(AllDeviceExtensions(), SupportedApi().device, count, properties);
}

FORNAX_ENTRY_POINT(VkResult)
vkEnumerateDeviceLayerProperties(VkPhysicalDevice, uint32_t* count, VkLayerProperties*) {
    *count = 0;
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkGetPhysicalDeviceToolProperties(VkPhysicalDevice,
                                  uint32_t* count,
                                  VkPhysicalDeviceToolProperties*) {
    *count = 0;  // layers add themselves
    return VK_SUCCESS;
}

// --- Memory
// ----------------------------------------------------------------------------------------

FORNAX_ENTRY_POINT(void)
vkGetPhysicalDeviceMemoryProperties(VkPhysicalDevice physical_device,
                                    VkPhysicalDeviceMemoryProperties* properties) {
    *properties = {
        .memoryTypeCount = 1,
        .memoryTypes = {{.propertyFlags = kMemoryTypeFlags, .heapIndex = 0}},
        .memoryHeapCount = 1,
        .memoryHeaps = {{.size = FromHandle<PhysicalDevice>(physical_device)->heap().size_bytes,
                         .flags = VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}},
    };
}

FORNAX_ENTRY_POINT(void)
vkGetPhysicalDeviceMemoryProperties2(VkPhysicalDevice physical_device,
                                     VkPhysicalDeviceMemoryProperties2* properties) {
    vkGetPhysicalDeviceMemoryProperties(physical_device, &properties->memoryProperties);
    auto* budget = FindInChain<VkPhysicalDeviceMemoryBudgetPropertiesEXT>(
        properties->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
    if (budget) {
        // "heapBudget must be non-zero and at most the heap's size"; other heaps get zeros.
        auto& device = *FromHandle<PhysicalDevice>(physical_device);
        const hal::HeapState heap = device.heap();
        std::ranges::fill(budget->heapBudget, 0);
        std::ranges::fill(budget->heapUsage, 0);
        budget->heapBudget[0] = std::clamp<VkDeviceSize>(heap.budget_bytes, 1, heap.size_bytes);
        budget->heapUsage[0] = PhysicalDevice::allocated_bytes().load(std::memory_order_relaxed);
    }
}

// --- Sparse images: there are none. Formats are in format.cpp and image.cpp
// ------------------------------------------------

FORNAX_ENTRY_POINT(void)
vkGetPhysicalDeviceSparseImageFormatProperties(VkPhysicalDevice,
                                               VkFormat,
                                               VkImageType,
                                               VkSampleCountFlagBits,
                                               VkImageUsageFlags,
                                               VkImageTiling,
                                               uint32_t* count,
                                               VkSparseImageFormatProperties*) {
    *count = 0;
}

FORNAX_ENTRY_POINT(void)
vkGetPhysicalDeviceSparseImageFormatProperties2(VkPhysicalDevice,
                                                const VkPhysicalDeviceSparseImageFormatInfo2*,
                                                uint32_t* count,
                                                VkSparseImageFormatProperties2*) {
    *count = 0;
}

}  // namespace fornax::driver

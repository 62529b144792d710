// Device: a HAL device of its own, with what the application enabled on it.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>

#include <vulkan/vulkan_core.h>

#include "driver/allocator.h"
#include "driver/border_colors.h"
#include "driver/debug_printf.h"
#include "driver/image_tails.h"
#include "driver/memory_report.h"
#include "driver/object.h"
#include "driver/physical_device.h"
#include "driver/queue.h"
#include "driver/queue_family.h"
#include "driver/registry.h"
#include "driver/report.h"
#include "hal/device.h"

namespace fornax::driver {

class Device : public DeviceObject {
  public:
    using Handle = VkDevice;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_DEVICE;

    Device(PhysicalDevice& physical_device, const Allocator& allocator)
        : DeviceObject(physical_device.instance(), *this, kObjectType),
          allocator_(allocator),
          physical_device_(physical_device) {}
    ~Device();

    VkResult Init(const VkDeviceCreateInfo& info);

    const Allocator& allocator() const { return allocator_; }
    PhysicalDevice& physical_device() const { return physical_device_; }
    hal::Device& hal() const { return *hal_; }

    // The version and extensions in effect, and the features that were enabled.
    const ApiSet& api() const { return api_; }
    const FeatureSet& features() const { return features_; }

    // VkDevicePipelineBinaryInternalCacheControlKHR: kernels are not kept on disk.
    bool internal_cache_disabled() const { return internal_cache_disabled_; }

    // FORNAX_NPU or FORNAX_NPU_RECORDS: kernels count what they do.
    bool timed() const { return timed_; }

    // In order of creation, then nulls.
    std::span<Queue* const> queues() const { return queues_; }
    // Null for a queue that was not created.
    Queue* FindQueue(const VkDeviceQueueInfo2& info) const;

    // VK_ERROR_DEVICE_LOST with the reason, once the device is lost.
    VkResult CheckLost() const {
        return hal_->lost() ? Fail(*this, hal_->status().error()) : VK_SUCCESS;
    }

    // Null but for users who ask for what shaders print.
    DebugPrintf* debug_printf() const { return debug_printf_.get(); }
    // After each wait of the application.
    void PrintMessages() const {
        if (debug_printf_) {
            debug_printf_->Print(*this);
        }
    }

    MemoryReports& memory_reports() { return memory_reports_; }
    // The tails of sampled images in descriptor heaps.
    ImageTails& image_tails() { return image_tails_; }
    BorderColors& border_colors() { return border_colors_; }

    std::mutex& private_data_mutex() { return private_data_mutex_; }
    uint64_t NextPrivateDataSlot() { return next_private_data_slot_.fetch_add(1); }

    // Accounts of VkDeviceMemory objects, for the limit on their number and for the budget.
    std::atomic<uint32_t>& allocation_count() { return allocation_count_; }

    // Whether vkGetDeviceFaultReportsKHR has returned the one report that there is.
    std::atomic<bool>& fault_report_taken() { return fault_report_taken_; }

  private:
    VkResult CreateQueues(const VkDeviceCreateInfo& info);
    // Whether the family has these queues beside those `already` made.
    VkResult CheckQueues(const VkDeviceQueueCreateInfo& queues, uint32_t already) const;

    Allocator allocator_;
    PhysicalDevice& physical_device_;
    std::shared_ptr<hal::Device> hal_;
    std::unique_ptr<DebugPrintf> debug_printf_;
    ApiSet api_;
    FeatureSet features_;
    bool internal_cache_disabled_ = false;
    bool timed_ = false;
    std::array<Queue*, kAllQueues> queues_ = {};
    MemoryReports memory_reports_;
    ImageTails image_tails_;
    BorderColors border_colors_;
    std::mutex private_data_mutex_;
    std::atomic<uint64_t> next_private_data_slot_ = 1;
    std::atomic<uint32_t> allocation_count_ = 0;
    std::atomic<bool> fault_report_taken_ = false;
};

// Places an object of the device with the application's allocator; null, told, without memory.
template <typename T, typename... Args>
[[nodiscard]] T* NewObject(Device& device,
                           const VkAllocationCallbacks* callbacks,
                           size_t trailing_bytes,
                           Args&&... args) {
    const Allocator allocator(callbacks, device.allocator());
    T* object = allocator.New<T>(VK_SYSTEM_ALLOCATION_SCOPE_OBJECT, trailing_bytes, device,
                                 std::forward<Args>(args)...);
    if (!object) {
        FailOutOfHostMemory(device);
    }
    return object;
}

// Null does nothing.
template <typename T>
void DeleteObject(Device& device, const VkAllocationCallbacks* callbacks, T* object) {
    Allocator(callbacks, device.allocator()).Delete(object);
}

// The common form of vkCreate: NewObject, then object->Init(args...), then the handle.
template <typename T, typename... Args>
VkResult CreateObject(VkDevice device_handle,
                      const VkAllocationCallbacks* callbacks,
                      typename T::Handle* handle,
                      Args&&... args) {
    auto& device = *FromHandle<Device>(device_handle);
    Owned<T> object(Allocator(callbacks, device.allocator()), NewObject<T>(device, callbacks, 0));
    if (!object) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    FORNAX_RETURN_IF_FAILED(object->Init(std::forward<Args>(args)...));
    *handle = ToHandle(object.Release());
    return VK_SUCCESS;
}

// The common form of vkDestroy.
template <typename T>
void DestroyObject(VkDevice device,
                   const VkAllocationCallbacks* callbacks,
                   typename T::Handle handle) {
    DeleteObject(*FromHandle<Device>(device), callbacks, FromHandle<T>(handle));
}

}  // namespace fornax::driver

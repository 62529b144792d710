// What an application hears of device memory: the events of VK_EXT_device_memory_report, and the
// messages of VK_EXT_device_address_binding_report about the addresses that objects have.
#pragma once

#include <atomic>
#include <memory>

#include <vulkan/vulkan_core.h>

#include "base/result.h"
#include "driver/allocator.h"
#include "driver/object.h"
#include "hal/memory.h"

namespace fornax::driver {

// The callbacks of a device. Thread-safe: "the callback may be called from multiple threads".
class MemoryReports {
  public:
    // Copies those chained to VkDeviceCreateInfo. False when there is no memory.
    bool Init(const Allocator& allocator, const void* chain);

    bool wanted() const { return callbacks_.size() != 0; }

    // An id, unique in the device, for memory that nobody else can name.
    uint64_t NextId() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

    void Send(VkDeviceMemoryReportEventTypeEXT type,
              uint64_t id,
              VkDeviceSize size_bytes,
              const Object& object) const;

  private:
    HostArray<VkDeviceDeviceMemoryReportCreateInfoEXT> callbacks_;
    std::atomic<uint64_t> next_id_ = 1;
};

// Tells the messengers that an object got or lost a range of addresses, if reportAddressBinding is
// on. `internal`: the application does not have its handle yet. Throws nothing.
void ReportBinding(const DeviceObject& object,
                   VkDeviceAddressBindingTypeEXT type,
                   uint64_t address,
                   VkDeviceSize size_bytes,
                   bool internal = false);

// The device memory of one object, from the HAL's allocation to the end of the object, with the
// reports of both. Empty until Allocate or Take succeeded.
class ObjectMemory {
  public:
    // `owner` has this as a member.
    explicit ObjectMemory(const DeviceObject& owner) : owner_(owner) {}
    ~ObjectMemory();
    ObjectMemory(const ObjectMemory&) = delete;
    ObjectMemory& operator=(const ObjectMemory&) = delete;

    VkResult Allocate(uint64_t size_bytes, const hal::MemoryOptions& options = {});
    // What an import of `size_bytes` made.
    VkResult TakeImport(Result<std::shared_ptr<hal::Memory>> memory);

    explicit operator bool() const { return memory_ != nullptr; }
    hal::Memory& operator*() const { return *memory_; }
    hal::Memory* operator->() const { return memory_.get(); }
    bool imported() const { return imported_; }

  private:
    void Take(std::shared_ptr<hal::Memory> memory);

    const DeviceObject& owner_;
    std::shared_ptr<hal::Memory> memory_;
    uint64_t id_ = 0;
    bool imported_ = false;
};

}  // namespace fornax::driver

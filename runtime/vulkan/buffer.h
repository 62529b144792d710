// Storage buffers in memory that the host sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "runtime/vulkan/device.h"

namespace fornax::vulkan {

// A storage buffer with memory of its own, mapped as long as it lives; or one in memory of the
// caller. What the host writes before a submission the device sees; what the device wrote the host
// sees after a barrier to the host and a fence.
class Buffer {
  public:
    // At least `size_bytes`, not 0, zeroed or not as the device does. kOutOfDeviceMemory, with
    // the size, if it does not give that much.
    static Result<std::unique_ptr<Buffer>> Create(std::shared_ptr<Device> device,
                                                  uint64_t size_bytes);
    // The caller's bytes, which must stay until the buffer is gone. kUnsupported if the device
    // cannot use them in place: without VK_EXT_external_memory_host, or where the address is not
    // aligned as offsets of storage buffers are.
    static Result<std::unique_ptr<Buffer>> Import(std::shared_ptr<Device> device,
                                                  void* data,
                                                  uint64_t size_bytes);
    ~Buffer();

    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    VkBuffer handle() const { return buffer_; }
    uint64_t size_bytes() const { return size_bytes_; }
    // The first of the bytes, and where it lies in the buffer (not 0 only of imported ones).
    uint8_t* data() const { return data_; }
    uint64_t offset() const { return offset_; }

  private:
    explicit Buffer(std::shared_ptr<Device> device) : device_(std::move(device)) {}

    std::shared_ptr<Device> device_;
    VkBuffer buffer_ = VK_NULL_HANDLE;
    VkDeviceMemory memory_ = VK_NULL_HANDLE;
    uint64_t size_bytes_ = 0;
    uint64_t offset_ = 0;
    uint8_t* data_ = nullptr;
};

}  // namespace fornax::vulkan

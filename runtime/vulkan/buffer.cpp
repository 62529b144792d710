#include "runtime/vulkan/buffer.h"

#include <fmt/format.h>

#include "runtime/vulkan/result.h"

namespace fornax::vulkan {
namespace {

constexpr VkBufferUsageFlags kUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_DST_BIT;

}  // namespace

Result<std::unique_ptr<Buffer>> Buffer::Create(std::shared_ptr<Device> device,
                                               uint64_t size_bytes) {
    std::unique_ptr<Buffer> buffer(new Buffer(std::move(device)));
    const Device& on = *buffer->device_;
    if (size_bytes > on.max_allocation_bytes()) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("A buffer of {} bytes is needed; the device {} gives at most {}.",
                                 size_bytes, on.name(), on.max_allocation_bytes())};
    }
    VkBufferCreateInfo buffer_info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    buffer_info.size = size_bytes;
    buffer_info.usage = kUsage;
    FORNAX_RETURN_IF_FAILED("vkCreateBuffer", on.vk().vkCreateBuffer(on.handle(), &buffer_info,
                                                                     nullptr, &buffer->buffer_));
    VkMemoryRequirements requirements;
    on.vk().vkGetBufferMemoryRequirements(on.handle(), buffer->buffer_, &requirements);
    VkMemoryAllocateInfo allocate_info = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate_info.allocationSize = requirements.size;
    FORNAX_ASSIGN_OR_RETURN(allocate_info.memoryTypeIndex,
                            on.HostMemoryType(requirements.memoryTypeBits));
    const VkResult result =
        on.vk().vkAllocateMemory(on.handle(), &allocate_info, nullptr, &buffer->memory_);
    if (result != VK_SUCCESS) {
        return Error{ErrorCode::kOutOfDeviceMemory,
                     fmt::format("The device {} did not give {} bytes: vkAllocateMemory returned "
                                 "{}.",
                                 on.name(), requirements.size, ResultName(result))};
    }
    FORNAX_RETURN_IF_FAILED(
        "vkBindBufferMemory",
        on.vk().vkBindBufferMemory(on.handle(), buffer->buffer_, buffer->memory_, 0));
    void* mapped = nullptr;
    FORNAX_RETURN_IF_FAILED("vkMapMemory", on.vk().vkMapMemory(on.handle(), buffer->memory_, 0,
                                                               VK_WHOLE_SIZE, 0, &mapped));
    buffer->data_ = static_cast<uint8_t*>(mapped);
    buffer->size_bytes_ = size_bytes;
    return buffer;
}

Result<std::unique_ptr<Buffer>> Buffer::Import(std::shared_ptr<Device> device,
                                               void* data,
                                               uint64_t size_bytes) {
    std::unique_ptr<Buffer> buffer(new Buffer(std::move(device)));
    const Device& on = *buffer->device_;
    const uint64_t alignment = on.features().host_import_alignment;
    if (alignment == 0) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The device {} cannot use memory of the host in place: it lacks "
                                 "VK_EXT_external_memory_host.",
                                 on.name())};
    }
    const auto address = reinterpret_cast<uintptr_t>(data);
    const uint64_t needed = on.limits().minStorageBufferOffsetAlignment;
    if (size_bytes == 0 || address % needed != 0) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("Memory can be used in place if its address is a multiple of {}; "
                                 "it is {:#x}.",
                                 needed, address)};
    }
    // Whole pages: what lies beside the caller's bytes in them is not touched.
    const uintptr_t begin = address / alignment * alignment;
    const uintptr_t end = (address + size_bytes + alignment - 1) / alignment * alignment;
    buffer->offset_ = address - begin;
    buffer->data_ = static_cast<uint8_t*>(data);
    buffer->size_bytes_ = size_bytes;

    const VkExternalMemoryHandleTypeFlagBits kind =
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    VkMemoryHostPointerPropertiesEXT pointer = {
        VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    FORNAX_RETURN_IF_FAILED("vkGetMemoryHostPointerPropertiesEXT",
                            on.vk().vkGetMemoryHostPointerPropertiesEXT(
                                on.handle(), kind, reinterpret_cast<void*>(begin), &pointer));
    VkExternalMemoryBufferCreateInfo external = {
        VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
    external.handleTypes = kind;
    VkBufferCreateInfo buffer_info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, &external};
    buffer_info.size = end - begin;
    buffer_info.usage = kUsage;
    FORNAX_RETURN_IF_FAILED("vkCreateBuffer", on.vk().vkCreateBuffer(on.handle(), &buffer_info,
                                                                     nullptr, &buffer->buffer_));
    VkMemoryRequirements requirements;
    on.vk().vkGetBufferMemoryRequirements(on.handle(), buffer->buffer_, &requirements);
    if (requirements.size > end - begin) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The device {} needs {} bytes for a buffer of {}.", on.name(),
                                 requirements.size, end - begin)};
    }
    VkImportMemoryHostPointerInfoEXT import = {
        VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT};
    import.handleType = kind;
    import.pHostPointer = reinterpret_cast<void*>(begin);
    VkMemoryAllocateInfo allocate_info = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &import};
    allocate_info.allocationSize = end - begin;
    FORNAX_ASSIGN_OR_RETURN(
        allocate_info.memoryTypeIndex,
        on.HostMemoryType(requirements.memoryTypeBits & pointer.memoryTypeBits));
    FORNAX_RETURN_IF_FAILED(
        "vkAllocateMemory",
        on.vk().vkAllocateMemory(on.handle(), &allocate_info, nullptr, &buffer->memory_));
    FORNAX_RETURN_IF_FAILED(
        "vkBindBufferMemory",
        on.vk().vkBindBufferMemory(on.handle(), buffer->buffer_, buffer->memory_, 0));
    return buffer;
}

Buffer::~Buffer() {
    const VolkDeviceTable& vk = device_->vk();
    vk.vkDestroyBuffer(device_->handle(), buffer_, nullptr);
    vk.vkFreeMemory(device_->handle(), memory_, nullptr);
}

}  // namespace fornax::vulkan

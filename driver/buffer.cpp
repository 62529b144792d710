// Creating buffers, their memory requirements and binding.
#include "driver/buffer.h"

#include "driver/chain.h"
#include "driver/device.h"
#include "driver/device_memory.h"
#include "driver/entry_point.h"
#include "driver/limits.h"
#include "driver/memory_report.h"

namespace fornax::driver {

VkResult Buffer::Init(const VkBufferCreateInfo& info) {
    const uint64_t limit = device().physical_device().capabilities().max_allocation_bytes;
    if (info.size > limit) {
        return Fail(device(), VK_ERROR_OUT_OF_DEVICE_MEMORY,
                    "A buffer of {} bytes was asked for; the largest allocation is {} bytes.",
                    info.size, limit);
    }
    // bufferDeviceAddressCaptureReplay is off: an address is where the memory happens to lie.
    const auto* opaque = FindInChain<VkBufferOpaqueCaptureAddressCreateInfo>(
        info.pNext, VK_STRUCTURE_TYPE_BUFFER_OPAQUE_CAPTURE_ADDRESS_CREATE_INFO);
    const auto* address = FindInChain<VkBufferDeviceAddressCreateInfoEXT>(
        info.pNext, VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_CREATE_INFO_EXT);
    if ((opaque && opaque->opaqueCaptureAddress != 0) || (address && address->deviceAddress != 0)) {
        return Fail(device(), VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS,
                    "A buffer at the address {:#x} was asked for; addresses cannot be replayed.",
                    opaque ? opaque->opaqueCaptureAddress : address->deviceAddress);
    }
    size_bytes_ = info.size;
    return VK_SUCCESS;
}

void Buffer::Bind(const DeviceMemory& memory, VkDeviceSize offset_bytes) {
    address_ = memory.hal().address() + offset_bytes;
    ReportBinding(*this, VK_DEVICE_ADDRESS_BINDING_TYPE_BIND_EXT, address_, size_bytes_);
}

Buffer::~Buffer() {
    if (address_) {
        ReportBinding(*this, VK_DEVICE_ADDRESS_BINDING_TYPE_UNBIND_EXT, address_, size_bytes_);
    }
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateBuffer(VkDevice device,
               const VkBufferCreateInfo* info,
               const VkAllocationCallbacks* callbacks,
               VkBuffer* buffer) {
    return CreateObject<Buffer>(device, callbacks, buffer, *info);
}

FORNAX_ENTRY_POINT(void)
vkDestroyBuffer(VkDevice device, VkBuffer buffer, const VkAllocationCallbacks* callbacks) {
    DestroyObject<Buffer>(device, callbacks, buffer);
}

FORNAX_ENTRY_POINT(void)
vkGetBufferMemoryRequirements2(VkDevice,
                               const VkBufferMemoryRequirementsInfo2* info,
                               VkMemoryRequirements2* requirements) {
    FillMemoryRequirements(FromHandle<Buffer>(info->buffer)->size_bytes(), kBufferAlignment,
                           *requirements);
}

FORNAX_ENTRY_POINT(void)
vkGetDeviceBufferMemoryRequirements(VkDevice,
                                    const VkDeviceBufferMemoryRequirements* info,
                                    VkMemoryRequirements2* requirements) {
    FillMemoryRequirements(info->pCreateInfo->size, kBufferAlignment, *requirements);
}

FORNAX_ENTRY_POINT(void)
vkGetBufferMemoryRequirements(VkDevice device,
                              VkBuffer buffer,
                              VkMemoryRequirements* requirements) {
    const VkBufferMemoryRequirementsInfo2 info{
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2,
        .buffer = buffer,
    };
    VkMemoryRequirements2 out{.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2};
    vkGetBufferMemoryRequirements2(device, &info, &out);
    *requirements = out.memoryRequirements;
}

FORNAX_ENTRY_POINT(VkResult)
vkBindBufferMemory2(VkDevice, uint32_t count, const VkBindBufferMemoryInfo* infos) {
    for (uint32_t i = 0; i < count; ++i) {
        FromHandle<Buffer>(infos[i].buffer)
            ->Bind(*FromHandle<DeviceMemory>(infos[i].memory), infos[i].memoryOffset);
        const auto* status =
            FindInChain<VkBindMemoryStatus>(infos[i].pNext, VK_STRUCTURE_TYPE_BIND_MEMORY_STATUS);
        if (status) {
            *status->pResult = VK_SUCCESS;
        }
    }
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkBindBufferMemory(VkDevice device, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize offset) {
    const VkBindBufferMemoryInfo info{
        .sType = VK_STRUCTURE_TYPE_BIND_BUFFER_MEMORY_INFO,
        .buffer = buffer,
        .memory = memory,
        .memoryOffset = offset,
    };
    return vkBindBufferMemory2(device, 1, &info);
}

// What kernels reach it by: the model's device addresses are the host's.
FORNAX_ENTRY_POINT(VkDeviceAddress)
vkGetBufferDeviceAddress(VkDevice, const VkBufferDeviceAddressInfo* info) {
    return FromHandle<Buffer>(info->buffer)->address();
}

// 0, "no address was captured": bufferDeviceAddressCaptureReplay is off.
FORNAX_ENTRY_POINT(uint64_t)
vkGetBufferOpaqueCaptureAddress(VkDevice, const VkBufferDeviceAddressInfo*) {
    return 0;
}

}  // namespace fornax::driver

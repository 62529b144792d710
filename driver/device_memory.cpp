// Allocating and mapping. The one memory type is coherent and mapped from the start, so mapping is
// the address of memory and flushing does nothing.
#include "driver/device_memory.h"

#include "driver/chain.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/limits.h"

namespace fornax::driver {

VkResult DeviceMemory::Init(const VkMemoryAllocateInfo& info) {
    const auto* opaque = FindInChain<VkMemoryOpaqueCaptureAddressAllocateInfo>(
        info.pNext, VK_STRUCTURE_TYPE_MEMORY_OPAQUE_CAPTURE_ADDRESS_ALLOCATE_INFO);
    if (opaque && opaque->opaqueCaptureAddress != 0) {
        return Fail(device(), VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS,
                    "Memory at the address {:#x} was asked for; addresses cannot be replayed.",
                    opaque->opaqueCaptureAddress);
    }
    counted_ = true;
    if (device().allocation_count().fetch_add(1) >= kMaxMemoryAllocations) {
        return Fail(device(), VK_ERROR_TOO_MANY_OBJECTS,
                    "There are already {} allocations (maxMemoryAllocationCount).",
                    kMaxMemoryAllocations);
    }
    auto memory = device().hal().AllocateMemory(info.allocationSize);
    if (!memory)
        return Fail(device(), memory.error());
    memory_ = std::move(*memory);
    PhysicalDevice::allocated_bytes() += memory_->size_bytes();
    return VK_SUCCESS;
}

DeviceMemory::~DeviceMemory() {
    if (counted_)
        --device().allocation_count();
    if (memory_)
        PhysicalDevice::allocated_bytes() -= memory_->size_bytes();
}

void FillMemoryRequirements(VkDeviceSize size_bytes,
                            VkDeviceSize alignment,
                            VkMemoryRequirements2& requirements) {
    requirements.memoryRequirements = {
        // "size is a multiple of alignment" keeps neighbours in one allocation off shared lines.
        .size = (size_bytes + alignment - 1) & ~(alignment - 1),
        .alignment = alignment,
        .memoryTypeBits = 1,
    };
    auto* dedicated = FindInChain<VkMemoryDedicatedRequirements>(
        requirements.pNext, VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS);
    if (dedicated) {
        dedicated->prefersDedicatedAllocation = VK_FALSE;
        dedicated->requiresDedicatedAllocation = VK_FALSE;
    }
}

FORNAX_ENTRY_POINT(VkResult)
vkAllocateMemory(VkDevice device,
                 const VkMemoryAllocateInfo* info,
                 const VkAllocationCallbacks* callbacks,
                 VkDeviceMemory* memory) {
    // Dedicated allocations are like all others, and all memory has device addresses.
    return CreateObject<DeviceMemory>(device, callbacks, memory, *info);
}

FORNAX_ENTRY_POINT(void)
vkFreeMemory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* callbacks) {
    DestroyObject<DeviceMemory>(device, callbacks, memory);
}

FORNAX_ENTRY_POINT(VkResult) vkMapMemory2(VkDevice, const VkMemoryMapInfo* info, void** data) {
    *data = FromHandle<DeviceMemory>(info->memory)->hal().host_pointer() + info->offset;
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkMapMemory(VkDevice device,
            VkDeviceMemory memory,
            VkDeviceSize offset,
            VkDeviceSize size,
            VkMemoryMapFlags flags,
            void** data) {
    const VkMemoryMapInfo info{
        .sType = VK_STRUCTURE_TYPE_MEMORY_MAP_INFO,
        .flags = flags,
        .memory = memory,
        .offset = offset,
        .size = size,
    };
    return vkMapMemory2(device, &info, data);
}

FORNAX_ENTRY_POINT(VkResult) vkUnmapMemory2(VkDevice, const VkMemoryUnmapInfo*) {
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void) vkUnmapMemory(VkDevice, VkDeviceMemory) {}

FORNAX_ENTRY_POINT(VkResult)
vkFlushMappedMemoryRanges(VkDevice, uint32_t, const VkMappedMemoryRange*) {
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkInvalidateMappedMemoryRanges(VkDevice, uint32_t, const VkMappedMemoryRange*) {
    return VK_SUCCESS;
}

// 0, as for buffers: addresses are not captured.
FORNAX_ENTRY_POINT(uint64_t)
vkGetDeviceMemoryOpaqueCaptureAddress(VkDevice, const VkDeviceMemoryOpaqueCaptureAddressInfo*) {
    return 0;
}

// For lazily allocated memory, of which there is none; all memory is committed.
FORNAX_ENTRY_POINT(void)
vkGetDeviceMemoryCommitment(VkDevice, VkDeviceMemory memory, VkDeviceSize* committed) {
    *committed = FromHandle<DeviceMemory>(memory)->hal().size_bytes();
}

}  // namespace fornax::driver

// Allocating and mapping. The one memory type is coherent and mapped from the start, so mapping is
// the address of memory and flushing does nothing.
#include "driver/device_memory.h"

#include <unistd.h>

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
    FORNAX_RETURN_IF_FAILED(Allocate(info));
    if (!memory_.imported()) {
        device().physical_device().allocated_bytes() += memory_->size_bytes();
    }
    return VK_SUCCESS;
}

VkResult DeviceMemory::Allocate(const VkMemoryAllocateInfo& info) {
    const auto* file = FindInChain<VkImportMemoryFdInfoKHR>(
        info.pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);
    if (file && file->handleType != 0) {
        return Import(*file, info.allocationSize);
    }
    const auto* host = FindInChain<VkImportMemoryHostPointerInfoEXT>(
        info.pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
    if (host && host->handleType != 0) {
        return Import(*host, info.allocationSize);
    }
    // VK_MEMORY_ALLOCATE_ZERO_INITIALIZE_BIT_EXT asks for what every allocation is (hal/memory.h).
    const auto* exported = FindInChain<VkExportMemoryAllocateInfo>(
        info.pNext, VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO);
    return memory_.Allocate(
        info.allocationSize,
        {.exportable =
             exported && (exported->handleTypes & VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT),
         .placeable = device().features().memoryMapPlaced});
}

VkResult DeviceMemory::Import(const VkImportMemoryFdInfoKHR& info, VkDeviceSize size_bytes) {
    FORNAX_RETURN_IF_FAILED(
        memory_.TakeImport(device().hal().ImportMemoryFile(info.fd, size_bytes)));
    // "Importing memory from a file descriptor transfers ownership of the file descriptor"; the
    // memory has one of its own.
    close(info.fd);
    return VK_SUCCESS;
}

VkResult DeviceMemory::Import(const VkImportMemoryHostPointerInfoEXT& info,
                              VkDeviceSize size_bytes) {
    return memory_.TakeImport(device().hal().ImportHostMemory(info.pHostPointer, size_bytes));
}

DeviceMemory::~DeviceMemory() {
    if (counted_) {
        --device().allocation_count();
    }
    if (!memory_) {
        return;
    }
    // "If a memory object is mapped at the time it is freed, it is implicitly unmapped."
    if (placed_) {
        (void)hal::UnmapAt(placed_, placed_bytes_, false);
    }
    if (!memory_.imported()) {
        device().physical_device().allocated_bytes() -= memory_->size_bytes();
    }
}

VkResult DeviceMemory::Map(const VkMemoryMapInfo& info, void** data) {
    if (!(info.flags & VK_MEMORY_MAP_PLACED_BIT_EXT)) {
        *data = memory_->host_pointer() + info.offset;
        return VK_SUCCESS;
    }
    const auto* place = FindInChain<VkMemoryMapPlacedInfoEXT>(
        info.pNext, VK_STRUCTURE_TYPE_MEMORY_MAP_PLACED_INFO_EXT);
    const VkDeviceSize size_bytes =
        info.size == VK_WHOLE_SIZE ? memory_->size_bytes() - info.offset : info.size;
    const Status mapped = memory_->MapAt(place->pPlacedAddress, info.offset, size_bytes);
    if (!mapped) {
        return FailWith(*this, VK_ERROR_MEMORY_MAP_FAILED, mapped.error().message);
    }
    placed_ = place->pPlacedAddress;
    placed_bytes_ = size_bytes;
    *data = placed_;
    return VK_SUCCESS;
}

VkResult DeviceMemory::Unmap(const VkMemoryUnmapInfo& info) {
    if (!placed_) {
        return VK_SUCCESS;
    }
    const bool reserve = info.flags & VK_MEMORY_UNMAP_RESERVE_BIT_EXT;
    const Status unmapped = hal::UnmapAt(placed_, placed_bytes_, reserve);
    // "... leaves the memory range mapped" when it fails.
    if (!unmapped) {
        return FailWith(*this, VK_ERROR_MEMORY_MAP_FAILED, unmapped.error().message);
    }
    placed_ = nullptr;
    return VK_SUCCESS;
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
    return FromHandle<DeviceMemory>(info->memory)->Map(*info, data);
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

FORNAX_ENTRY_POINT(VkResult) vkUnmapMemory2(VkDevice, const VkMemoryUnmapInfo* info) {
    return FromHandle<DeviceMemory>(info->memory)->Unmap(*info);
}

FORNAX_ENTRY_POINT(void) vkUnmapMemory(VkDevice device, VkDeviceMemory memory) {
    const VkMemoryUnmapInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_UNMAP_INFO, .memory = memory};
    (void)vkUnmapMemory2(device, &info);
}

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

// Priorities say which memory should stay on the device when there is too little of it ("Device
// Memory Priority"). The host's memory is the device's: nothing is moved elsewhere.
FORNAX_ENTRY_POINT(void) vkSetDeviceMemoryPriorityEXT(VkDevice, VkDeviceMemory, float) {}

// For lazily allocated memory, of which there is none; all memory is committed.
FORNAX_ENTRY_POINT(void)
vkGetDeviceMemoryCommitment(VkDevice, VkDeviceMemory memory, VkDeviceSize* committed) {
    *committed = FromHandle<DeviceMemory>(memory)->hal().size_bytes();
}

}  // namespace fornax::driver

// The default allocator: the C library's heap behind the signature of VkAllocationCallbacks.
#include "driver/allocator.h"

#include <algorithm>
#include <cstdlib>

namespace fornax::driver {
namespace {

VKAPI_ATTR void* VKAPI_CALL HeapAllocate(void*,
                                         size_t size_bytes,
                                         size_t alignment,
                                         VkSystemAllocationScope) {
    alignment = std::max(alignment, alignof(std::max_align_t));
    // aligned_alloc wants a multiple of the alignment.
    const size_t rounded = (size_bytes + alignment - 1) & ~(alignment - 1);
    return rounded < size_bytes ? nullptr : std::aligned_alloc(alignment, rounded);
}

VKAPI_ATTR void VKAPI_CALL HeapFree(void*, void* memory) {
    std::free(memory);
}

}  // namespace

// The driver never reallocates, so pfnReallocation stays null.
Allocator::Allocator() : callbacks_{.pfnAllocation = HeapAllocate, .pfnFree = HeapFree} {}

}  // namespace fornax::driver

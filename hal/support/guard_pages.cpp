#include "hal/support/guard_pages.h"

#include <sys/mman.h>

namespace fornax::hal {

namespace {

std::byte* Map(uint64_t page_bytes, int flags, int file) {
    const uint64_t all_bytes = page_bytes + 2 * kMemoryPageBytes;
    void* mapping =
        mmap(nullptr, all_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) {
        return nullptr;
    }
    auto* begin = static_cast<std::byte*>(mapping) + kMemoryPageBytes;
    if (mmap(begin, page_bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE | MAP_FIXED, file,
             0) == MAP_FAILED) {
        munmap(mapping, all_bytes);
        return nullptr;
    }
    return begin;
}

}  // namespace

std::byte* MapBetweenGuards(uint64_t page_bytes) {
    return Map(page_bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

std::byte* MapSharedBetweenGuards(uint64_t page_bytes, int file) {
    return Map(page_bytes, MAP_SHARED | (file < 0 ? MAP_ANONYMOUS : 0), file);
}

void UnmapBetweenGuards(std::byte* begin, uint64_t page_bytes) {
    munmap(begin - kMemoryPageBytes, page_bytes + 2 * kMemoryPageBytes);
}

}  // namespace fornax::hal

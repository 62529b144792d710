// The replaced functions of the standard library, and the switch of their failing.
#include "base/failing_new.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace {

thread_local bool t_counting = false;
thread_local int t_next = 0;
thread_local int t_fail_at = -1;
thread_local bool t_aligned_failed = false;
std::atomic<int> g_live = 0;  // allocations of counting threads that are not freed

constexpr uint64_t kCounted = 0x636f756e74656421;

bool MayAllocate() {
    return !t_counting || t_next++ != t_fail_at;
}

// A header before the memory tells whether it was counted.
void* Allocate(size_t size, size_t alignment) {
    if (!MayAllocate()) {
        return nullptr;
    }
    const size_t header = std::max(alignment, size_t{16});
    void* memory = nullptr;
    if (posix_memalign(&memory, header, header + size) != 0) {
        return nullptr;
    }
    auto* start = static_cast<std::byte*>(memory) + header;
    const uint64_t mark = t_counting ? kCounted : 0;
    std::memcpy(start - sizeof(mark), &mark, sizeof(mark));
    g_live += t_counting;
    return start;
}

void Free(void* start, size_t alignment) {
    if (!start) {
        return;
    }
    uint64_t mark;
    std::memcpy(&mark, static_cast<std::byte*>(start) - sizeof(mark), sizeof(mark));
    g_live -= mark == kCounted;
    std::free(static_cast<std::byte*>(start) - std::max(alignment, size_t{16}));
}

void* AllocateOrThrow(size_t size, size_t alignment) {
    void* memory = Allocate(size, alignment);
    if (!memory) {
        throw std::bad_alloc();
    }
    return memory;
}

}  // namespace

void* operator new(size_t size) {
    return AllocateOrThrow(size, 16);
}
void* operator new[](size_t size) {
    return AllocateOrThrow(size, 16);
}
void* operator new(size_t size, std::align_val_t alignment) {
    return AllocateOrThrow(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
    return AllocateOrThrow(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
    return Allocate(size, 16);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
    return Allocate(size, 16);
}
void operator delete(void* memory) noexcept {
    Free(memory, 16);
}
void operator delete[](void* memory) noexcept {
    Free(memory, 16);
}
void operator delete(void* memory, size_t) noexcept {
    Free(memory, 16);
}
void operator delete[](void* memory, size_t) noexcept {
    Free(memory, 16);
}
void operator delete(void* memory, std::align_val_t alignment) noexcept {
    Free(memory, static_cast<size_t>(alignment));
}
void operator delete[](void* memory, std::align_val_t alignment) noexcept {
    Free(memory, static_cast<size_t>(alignment));
}
void operator delete(void* memory, size_t, std::align_val_t alignment) noexcept {
    Free(memory, static_cast<size_t>(alignment));
}
void operator delete[](void* memory, size_t, std::align_val_t alignment) noexcept {
    Free(memory, static_cast<size_t>(alignment));
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    Free(memory, 16);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
    Free(memory, 16);
}

// What command streams and objects without callbacks live in.
extern "C" void* aligned_alloc(size_t alignment, size_t size) noexcept {
    void* memory = nullptr;
    if (!MayAllocate() || posix_memalign(&memory, std::max(alignment, sizeof(void*)), size) != 0) {
        t_aligned_failed = true;
        errno = ENOMEM;
        return nullptr;
    }
    return memory;
}

namespace fornax {

bool FailsAt(int n, const std::function<void()>& action) {
    t_next = 0;
    t_fail_at = n;
    t_aligned_failed = false;
    t_counting = true;
    action();
    t_counting = false;
    return t_next > n;
}

bool CountAllocations(bool count) {
    return std::exchange(t_counting, count);
}

int LiveAllocations() {
    return g_live;
}

bool AlignedAllocationFailed() {
    return t_aligned_failed;
}

}  // namespace fornax

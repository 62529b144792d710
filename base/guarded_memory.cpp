#include "base/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <utility>

namespace fornax {

namespace {

size_t PageBytes() {
    static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

}  // namespace

GuardedMemory::GuardedMemory(size_t size, size_t alignment, uint8_t fill) : size_(size) {
    const size_t page = PageBytes();
    // One page before it, too, for stores that go below.
    const size_t readable = page + (size + alignment + page - 1) / page * page;
    void* memory =
        mmap(nullptr, readable + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
    auto* begin = static_cast<uint8_t*>(memory);
    mprotect(begin + readable, page, PROT_NONE);
    readable_ = {begin, readable};
    std::memset(begin, fill, readable);
    const auto end = reinterpret_cast<uintptr_t>(begin + readable);
    data_ = reinterpret_cast<uint8_t*>((end - size) & ~(uintptr_t{alignment} - 1));
}

GuardedMemory::~GuardedMemory() {
    if (!readable_.empty()) {
        munmap(readable_.data(), readable_.size() + PageBytes());
    }
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : readable_(std::exchange(other.readable_, {})), data_(other.data_), size_(other.size_) {}

}  // namespace fornax

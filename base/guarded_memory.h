// For tests of generated code: memory that ends where nothing can be read, so that a load that goes
// beyond is a fault and not a value that nobody looks at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fornax {

class GuardedMemory {
  public:
    // `size` bytes at a multiple of `alignment`, a power of two; fewer than `alignment` bytes lie
    // between their end and the first that is not there. What lies before and between is `fill`.
    // Throws std::bad_alloc.
    GuardedMemory(size_t size, size_t alignment, uint8_t fill);
    ~GuardedMemory();
    GuardedMemory(GuardedMemory&& other) noexcept;
    GuardedMemory& operator=(GuardedMemory&&) = delete;

    uint8_t* data() const { return data_; }
    size_t size() const { return size_; }
    // With what lies before and behind, in which a store shows.
    std::span<const uint8_t> readable() const { return readable_; }

  private:
    std::span<uint8_t> readable_;
    uint8_t* data_;
    size_t size_;
};

}  // namespace fornax

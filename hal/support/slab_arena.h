// SlabArena: small pieces of device memory, cut from pages that hold nothing else, so that a kernel
// that leaves its buffers meets other device memory or a fault and never the process's heap.
//
// A slab is a mapping between guard pages, cut into slots of one size. A mapping for each piece
// would cost a small one three calls of the system, and the process one of its 65,530 mappings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "hal/memory.h"

namespace fornax::hal {

// Thread-safe.
class SlabArena {
  public:
    // Larger pieces are worth a mapping of their own.
    static constexpr uint64_t kLeastMappedBytes = 128 * 1024;

    class Slab;
    struct Piece {
        std::byte* pointer = nullptr;
        Slab* slab = nullptr;
    };

    SlabArena();
    ~SlabArena();  // with every piece
    SlabArena(const SlabArena&) = delete;
    SlabArena& operator=(const SlabArena&) = delete;

    // Fewer than kLeastMappedBytes zeroed bytes, aligned as hal/memory.h says; a null pointer
    // without memory.
    Piece Take(uint64_t size_bytes);
    void Return(const Piece& piece);

    // The address space of the slabs that there are.
    uint64_t mapped_bytes() const;

  private:
    // Slots of one size. Those of less than a page differ by kMemoryAlignment, others by a page.
    static constexpr size_t kSmallClasses = kMemoryPageBytes / kMemoryAlignment;
    static constexpr size_t kClasses = kSmallClasses + kLeastMappedBytes / kMemoryPageBytes;

    struct SizeClass {
        std::vector<std::unique_ptr<Slab>> slabs;
        std::vector<Slab*> open;  // those with a free slot
    };

    Slab* AddSlab(SizeClass& size_class, uint64_t slot_bytes);

    mutable std::mutex mutex_;
    std::array<SizeClass, kClasses> classes_;
};

}  // namespace fornax::hal

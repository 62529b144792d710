#include "hal/support/slab_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "hal/support/guard_pages.h"

namespace fornax::hal {

namespace {

constexpr uint64_t kSlabBytes = 1024 * 1024;  // about
constexpr uint64_t kLeastSlots = 16;
constexpr uint64_t kMostSlots = 4096;
// What an unused slab keeps for the next piece; memory beyond it goes back to the system.
constexpr uint64_t kMostKeptBytes = 256 * 1024;

constexpr uint64_t SlotBytes(uint64_t size_bytes) {
    return RoundUp(size_bytes, size_bytes < kMemoryPageBytes ? kMemoryAlignment : kMemoryPageBytes);
}

}  // namespace

class SlabArena::Slab {
  public:
    // `pages` is a mapping between guards, which the slab takes over.
    Slab(SizeClass& owner, std::byte* pages, uint64_t slot_bytes, uint32_t slots)
        : owner_(owner), pages_(pages), slot_bytes_(slot_bytes), slots_(slots) {}
    ~Slab() { UnmapBetweenGuards(pages_, page_bytes()); }
    Slab(const Slab&) = delete;
    Slab& operator=(const Slab&) = delete;

    static uint32_t SlotsFor(uint64_t slot_bytes) {
        return static_cast<uint32_t>(std::clamp(kSlabBytes / slot_bytes, kLeastSlots, kMostSlots));
    }
    static uint64_t PageBytes(uint64_t slot_bytes) {
        return RoundUp(slot_bytes * SlotsFor(slot_bytes), kMemoryPageBytes);
    }

    SizeClass& owner() const { return owner_; }
    uint64_t page_bytes() const { return PageBytes(slot_bytes_); }
    uint64_t slot_bytes() const { return slot_bytes_; }
    bool full() const { return used_ == slots_; }
    bool empty() const { return used_ == 0; }

    // Makes Return free of allocations.
    void Reserve() { returned_.reserve(slots_); }

    // `fresh` tells that nobody had it before.
    std::byte* Take(bool* fresh) {
        ++used_;
        *fresh = returned_.empty();
        uint16_t slot = 0;
        if (*fresh) {
            slot = static_cast<uint16_t>(first_fresh_++);
        } else {
            slot = returned_.back();
            returned_.pop_back();
        }
        return pages_ + slot * slot_bytes_;
    }
    void Return(const std::byte* pointer) {
        --used_;
        returned_.push_back(
            static_cast<uint16_t>(static_cast<uint64_t>(pointer - pages_) / slot_bytes_));
    }
    // Nothing is in use.
    void Shrink() {
        if (first_fresh_ * slot_bytes_ > kMostKeptBytes &&
            madvise(pages_, page_bytes(), MADV_DONTNEED) == 0) {
            first_fresh_ = 0;
            returned_.clear();
        }
    }

  private:
    SizeClass& owner_;
    std::byte* const pages_;
    const uint64_t slot_bytes_;
    const uint32_t slots_;
    uint32_t used_ = 0;
    uint32_t first_fresh_ = 0;
    std::vector<uint16_t> returned_;
};

SlabArena::SlabArena() = default;
SlabArena::~SlabArena() = default;

SlabArena::Piece SlabArena::Take(uint64_t size_bytes) {
    const uint64_t slot_bytes = SlotBytes(size_bytes);
    const uint64_t number = slot_bytes < kMemoryPageBytes
                                ? slot_bytes / kMemoryAlignment
                                : kSmallClasses + slot_bytes / kMemoryPageBytes - 1;
    Piece piece;
    bool fresh = false;
    {
        std::lock_guard lock(mutex_);
        SizeClass& size_class = classes_[number];
        piece.slab =
            size_class.open.empty() ? AddSlab(size_class, slot_bytes) : size_class.open.back();
        if (piece.slab == nullptr) {
            return piece;
        }
        piece.pointer = piece.slab->Take(&fresh);
        if (piece.slab->full()) {
            size_class.open.pop_back();
        }
    }
    if (!fresh) {
        std::memset(piece.pointer, 0, slot_bytes);
    }
    return piece;
}

// Null without memory. Everything that Return needs is there afterwards.
SlabArena::Slab* SlabArena::AddSlab(SizeClass& size_class, uint64_t slot_bytes) try {
    std::byte* pages = MapBetweenGuards(Slab::PageBytes(slot_bytes));
    if (pages == nullptr) {
        return nullptr;
    }
    std::unique_ptr<Slab> slab(new (std::nothrow)
                                   Slab(size_class, pages, slot_bytes, Slab::SlotsFor(slot_bytes)));
    if (slab == nullptr) {
        UnmapBetweenGuards(pages, Slab::PageBytes(slot_bytes));
        return nullptr;
    }
    slab->Reserve();
    size_class.open.reserve(size_class.slabs.size() + 1);
    size_class.slabs.push_back(std::move(slab));
    size_class.open.push_back(size_class.slabs.back().get());
    return size_class.open.back();
} catch (const std::bad_alloc&) {
    return nullptr;
}

void SlabArena::Return(const Piece& piece) {
    std::unique_ptr<Slab> unused;  // unmapped without the lock
    std::lock_guard lock(mutex_);
    Slab* const slab = piece.slab;
    SizeClass& size_class = slab->owner();
    if (slab->full()) {
        size_class.open.push_back(slab);
    }
    slab->Return(piece.pointer);
    if (!slab->empty()) {
        return;
    }
    if (size_class.open.size() == 1) {
        slab->Shrink();
        return;
    }
    std::erase(size_class.open, slab);
    const auto found = std::ranges::find(size_class.slabs, slab, &std::unique_ptr<Slab>::get);
    unused = std::move(*found);
    size_class.slabs.erase(found);
}

uint64_t SlabArena::mapped_bytes() const {
    std::lock_guard lock(mutex_);
    uint64_t bytes = 0;
    for (const SizeClass& size_class : classes_) {
        for (const std::unique_ptr<Slab>& slab : size_class.slabs) {
            bytes += slab->page_bytes();
        }
    }
    return bytes;
}

}  // namespace fornax::hal

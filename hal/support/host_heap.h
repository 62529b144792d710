// HostHeap: device memory taken from the host's, for backends whose device shares it.
//
// Keeps the limit, and the set of live ranges that addresses in packets are checked against. Memory
// comes in pages that hold nothing but device memory: what a kernel writes beside its buffers does
// not reach what the process itself allocated.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "base/per_process.h"
#include "base/result.h"
#include "hal/memory.h"
#include "hal/support/slab_arena.h"

namespace fornax::hal {

// The heap's size when nobody sets it: three quarters of what the machine has, or of what the
// control groups that this process is in may have. `root` is ControlGroupMemoryBytes's.
uint64_t DefaultHeapBytes(const std::string& root = "");

// Thread-safe. Allocations keep it alive.
class HostHeap : public std::enable_shared_from_this<HostHeap> {
  public:
    // With `guard` all but what is imported from the host lies between two pages that may not be
    // touched, and ends where the second begins, but for what aligns its begin: to
    // kMemoryAlignment, or to a page if it can have other mappings. An access that goes further is
    // a fault.
    explicit HostHeap(uint64_t limit_bytes, bool guard = false)
        : limit_bytes_(limit_bytes), guard_(guard) {}

    // Device's AllocateMemory, ImportMemoryFile and ImportHostMemory.
    Result<std::shared_ptr<Memory>> Allocate(uint64_t size_bytes,
                                             const MemoryOptions& options = {});
    Result<std::shared_ptr<Memory>> ImportFile(int file, uint64_t size_bytes);
    Result<std::shared_ptr<Memory>> ImportHost(void* pointer, uint64_t size_bytes);
    HeapState state() const;

  private:
    friend class HeapView;
    class Allocation;

    struct Range {
        uint64_t begin = 1;  // contains nothing, not even no bytes at 0
        uint64_t end = 0;

        bool Contains(uint64_t address, uint64_t size_bytes) const {
            return address >= begin && address <= end && size_bytes <= end - address;
        }
    };

    struct Backing;

    // What the threads of one process share. A child process begins with nothing, because a thread
    // of the parent may have been using it; memory that it inherits stays mapped there.
    struct Shared {
        SlabArena arena;
        std::shared_mutex mutex;              // guards what follows
        std::map<uint64_t, uint64_t> ranges;  // begin -> end
        // Imported from the host: few, and they may overlap.
        std::vector<Range> host_ranges;
    };

    // The registered range that contains this one, or an empty one.
    Range Find(uint64_t address, uint64_t size_bytes) const;
    // Zeroed memory; without a pointer if there is none.
    Backing TakeBacking(uint64_t size_bytes, uint64_t reserved_bytes);
    Result<std::shared_ptr<Memory>> Adopt(Backing backing, uint64_t size_bytes);
    void Release(const Allocation& allocation);

    const uint64_t limit_bytes_;
    const bool guard_;
    std::atomic<uint64_t> used_bytes_{0};
    std::atomic<uint64_t> frees_{0};  // counts removals, after which found ranges may be stale
    mutable PerProcess<Shared> shared_;
};

// One thread's window on the heap: answers "is this range live memory?" from the few ranges that it
// found last, so that the usual packet costs no lock.
class HeapView {
  public:
    explicit HeapView(const HostHeap& heap) : heap_(heap) {}

    bool Contains(uint64_t address, uint64_t size_bytes) {
        if (heap_.frees_.load(std::memory_order_acquire) == frees_) [[likely]] {
            for (const HostHeap::Range& range : recent_) {
                if (range.Contains(address, size_bytes)) {
                    return true;
                }
            }
        }
        return Search(address, size_bytes);
    }

  private:
    bool Search(uint64_t address, uint64_t size_bytes);

    const HostHeap& heap_;
    uint64_t frees_ = 0;
    uint32_t next_ = 0;
    std::array<HostHeap::Range, 8> recent_{};
};

}  // namespace fornax::hal

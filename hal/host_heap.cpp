// Allocation of device memory from the host.
#include "hal/host_heap.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <new>
#include <string>

#include <fmt/format.h>

namespace fornax::hal {

namespace {

// From here on memory comes as pages of its own, which arrive zeroed, when they are first touched.
constexpr uint64_t kMapBytes = 128 * 1024;
constexpr uint64_t kHugePageBytes = 2 * 1024 * 1024;

constexpr uint64_t RoundUp(uint64_t value, uint64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

std::byte* Map(uint64_t size_bytes) {
    // Large allocations start on a huge page and ask for them: streaming kernels miss the TLB less.
    const bool huge = size_bytes >= kHugePageBytes;
    const uint64_t slack_bytes = huge ? kHugePageBytes : 0;
    void* mapping = mmap(nullptr, size_bytes + slack_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) {
        return nullptr;
    }
    auto* begin = static_cast<std::byte*>(mapping);
    if (!huge) {
        return begin;
    }
    const auto address = reinterpret_cast<uint64_t>(begin);
    const uint64_t head_bytes = RoundUp(address, kHugePageBytes) - address;
    const uint64_t tail_bytes = slack_bytes - head_bytes;
    if (head_bytes != 0) {
        munmap(begin, head_bytes);
    }
    std::byte* aligned = begin + head_bytes;
    if (tail_bytes != 0) {
        munmap(aligned + size_bytes, tail_bytes);
    }
    madvise(aligned, size_bytes, MADV_HUGEPAGE);
    return aligned;
}

// The number after `key` in a file of lines such as "MemAvailable:  123 kB"; 0 without one.
uint64_t ReadField(const char* path, const std::string& key) {
    std::ifstream file(path);
    std::string word;
    uint64_t value = 0;
    while (file >> word) {
        if (word == key && file >> value) {
            return value;
        }
    }
    return 0;
}

// The memory limit of the control group that is visible as this process's root; 0 without one.
uint64_t ControlGroupBytes() {
    for (const char* path :
         {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
        std::ifstream file(path);
        uint64_t value = 0;
        if (file >> value) {
            return value;
        }
    }
    return 0;
}

uint64_t MachineBytes() {
    return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

uint64_t DefaultHeapBytes() {
    uint64_t bytes = MachineBytes();
    if (const uint64_t group_bytes = ControlGroupBytes(); group_bytes != 0) {
        bytes = std::min(bytes, group_bytes);
    }
    return bytes / 4 * 3 / kMemoryPageBytes * kMemoryPageBytes;
}

class HostHeap::Allocation : public Memory {
  public:
    Allocation(std::shared_ptr<HostHeap> heap,
               std::byte* pointer,
               uint64_t size_bytes,
               uint64_t reserved_bytes)
        : Memory(reinterpret_cast<uint64_t>(pointer), pointer, size_bytes),
          heap_(std::move(heap)),
          reserved_bytes_(reserved_bytes) {}

    ~Allocation() override {
        heap_->Release(*this);
        Free(host_pointer(), reserved_bytes_);
    }

    static std::byte* Take(uint64_t reserved_bytes) {
        if (reserved_bytes >= kMapBytes) {
            return Map(reserved_bytes);
        }
        const uint64_t alignment =
            reserved_bytes >= kMemoryPageBytes ? kMemoryPageBytes : kMemoryAlignment;
        void* pointer = std::aligned_alloc(alignment, reserved_bytes);
        if (pointer != nullptr) {
            std::memset(pointer, 0, reserved_bytes);
        }
        return static_cast<std::byte*>(pointer);
    }

    static void Free(std::byte* pointer, uint64_t reserved_bytes) {
        if (reserved_bytes >= kMapBytes) {
            munmap(pointer, reserved_bytes);
        } else {
            std::free(pointer);
        }
    }

    uint64_t reserved_bytes() const { return reserved_bytes_; }

  private:
    std::shared_ptr<HostHeap> heap_;
    uint64_t reserved_bytes_;
};

Result<std::shared_ptr<Memory>> HostHeap::Allocate(uint64_t size_bytes) {
    if (size_bytes == 0) {
        return Error{ErrorCode::kInvalidArgument, "A memory allocation needs at least one byte."};
    }
    const auto out_of_memory = [&](uint64_t used_bytes) {
        return Error{
            ErrorCode::kOutOfDeviceMemory,
            fmt::format("An allocation of {} bytes does not fit: {} of the heap's {} bytes "
                        "are in use.",
                        size_bytes, used_bytes, limit_bytes_)};
    };
    uint64_t used_bytes = used_bytes_.load(std::memory_order_relaxed);
    if (size_bytes > limit_bytes_) {
        return out_of_memory(used_bytes);
    }
    const uint64_t reserved_bytes =
        RoundUp(size_bytes, size_bytes >= kMemoryPageBytes ? kMemoryPageBytes : kMemoryAlignment);
    do {
        if (reserved_bytes > limit_bytes_ - std::min(limit_bytes_, used_bytes)) {
            return out_of_memory(used_bytes);
        }
    } while (!used_bytes_.compare_exchange_weak(used_bytes, used_bytes + reserved_bytes));

    std::byte* pointer = Allocation::Take(reserved_bytes);
    if (pointer == nullptr) {
        used_bytes_.fetch_sub(reserved_bytes);
        return Error{ErrorCode::kOutOfDeviceMemory,
                     fmt::format("The host has no {} bytes for a device allocation.", size_bytes)};
    }
    try {
        const auto begin = reinterpret_cast<uint64_t>(pointer);
        {
            std::unique_lock lock(mutex_);
            ranges_.emplace(begin, begin + size_bytes);
        }
        return std::shared_ptr<Memory>(
            std::make_shared<Allocation>(shared_from_this(), pointer, size_bytes, reserved_bytes));
    } catch (const std::bad_alloc&) {
        std::unique_lock lock(mutex_);
        ranges_.erase(reinterpret_cast<uint64_t>(pointer));
        Allocation::Free(pointer, reserved_bytes);
        used_bytes_.fetch_sub(reserved_bytes);
        return Error{ErrorCode::kOutOfHostMemory,
                     "The host has no memory left to describe a device allocation."};
    }
}

HeapState HostHeap::state() const {
    const uint64_t used_bytes = used_bytes_.load(std::memory_order_relaxed);
    // What the machine could still give; without that figure, the whole heap.
    const uint64_t available_bytes = ReadField("/proc/meminfo", "MemAvailable:") * 1024;
    const uint64_t budget_bytes =
        available_bytes == 0 ? limit_bytes_ : std::min(limit_bytes_, used_bytes + available_bytes);
    return {.size_bytes = limit_bytes_, .used_bytes = used_bytes, .budget_bytes = budget_bytes};
}

HostHeap::Range HostHeap::Find(uint64_t address) const {
    std::shared_lock lock(mutex_);
    auto next = ranges_.upper_bound(address);
    if (next == ranges_.begin()) {
        return {};
    }
    --next;
    return {next->first, next->second};
}

void HostHeap::Release(const Allocation& allocation) {
    {
        std::unique_lock lock(mutex_);
        ranges_.erase(allocation.address());
    }
    frees_.fetch_add(1, std::memory_order_release);
    used_bytes_.fetch_sub(allocation.reserved_bytes());
}

bool HeapView::Search(uint64_t address, uint64_t size_bytes) {
    const uint64_t frees = heap_.frees_.load(std::memory_order_acquire);
    if (frees != frees_) {
        recent_ = {};
        frees_ = frees;
    }
    const HostHeap::Range range = heap_.Find(address);
    if (!range.Contains(address, size_bytes)) {
        return false;
    }
    recent_[next_] = range;
    next_ = (next_ + 1) % recent_.size();
    return true;
}

}  // namespace fornax::hal

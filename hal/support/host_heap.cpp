// Allocation of device memory from the host.
#include "hal/support/host_heap.h"

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

#include "hal/support/control_group.h"
#include "hal/support/guard_pages.h"
#include "hal/support/shared_file.h"

namespace fornax::hal {

namespace {

constexpr uint64_t kHugePageBytes = 2 * 1024 * 1024;

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

uint64_t MachineBytes() {
    return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

uint64_t DefaultHeapBytes(const std::string& root) {
    const uint64_t machine_bytes = MachineBytes();
    const uint64_t bytes =
        std::min(machine_bytes, ControlGroupMemoryBytes(root).value_or(machine_bytes));
    return std::max(bytes / 4 * 3 / kMemoryPageBytes, uint64_t{1}) * kMemoryPageBytes;
}

// What a Memory stands on.
struct HostHeap::Backing {
    enum class Kind {
        kSlab,         // a piece of the arena
        kPages,        // a mapping of its own
        kSharedPages,  // one that can have others
        kHost,         // the application's
    };

    std::byte* pointer = nullptr;
    Kind kind = Kind::kPages;
    uint64_t charged_bytes = 0;  // to the heap
    // Set for a mapping.
    std::byte* mapping = nullptr;
    uint64_t mapped_bytes = 0;
    bool guarded = false;  // between guard pages
    // Set for a piece of a slab.
    SlabArena* arena = nullptr;
    SlabArena::Slab* slab = nullptr;
    UniqueFd file;  // of shared pages that can be exported

    // Pages between guards; the memory ends with them but for its alignment.
    static Backing TakeGuarded(uint64_t size_bytes) {
        const uint64_t used_bytes = RoundUp(size_bytes, kMemoryAlignment);
        const uint64_t page_bytes = RoundUp(used_bytes, kMemoryPageBytes);
        std::byte* pages = MapBetweenGuards(page_bytes);
        return {.pointer = pages == nullptr ? nullptr : pages + (page_bytes - used_bytes),
                .mapping = pages,
                .mapped_bytes = page_bytes,
                .guarded = true};
    }

    // Pages that can have other mappings: of a file, or without one when it is not valid.
    static Backing TakeShared(UniqueFd file, uint64_t mapped_bytes, bool guard) {
        std::byte* pages = nullptr;
        if (guard) {
            pages = MapSharedBetweenGuards(mapped_bytes, file.valid() ? file.get() : -1);
        } else {
            const int flags = MAP_SHARED | MAP_NORESERVE | (file.valid() ? 0 : MAP_ANONYMOUS);
            void* mapping =
                mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, flags, file.get(), 0);
            pages = mapping == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapping);
        }
        return {.pointer = pages,
                .kind = Kind::kSharedPages,
                .mapping = pages,
                .mapped_bytes = mapped_bytes,
                .guarded = guard,
                .file = std::move(file)};
    }

    // `present` is the arena of this process.
    void Free(SlabArena* present) {
        switch (kind) {
            case Kind::kSlab:
                if (arena == present) {
                    arena->Return({pointer, slab});
                }
                break;
            case Kind::kPages:
            case Kind::kSharedPages:
                if (guarded) {
                    UnmapBetweenGuards(mapping, mapped_bytes);
                } else {
                    munmap(mapping, mapped_bytes);
                }
                break;
            case Kind::kHost:
                break;
        }
    }
};

class HostHeap::Allocation : public Memory {
  public:
    Allocation(std::shared_ptr<HostHeap> heap, Backing backing, uint64_t size_bytes)
        : Memory(reinterpret_cast<uint64_t>(backing.pointer), backing.pointer, size_bytes),
          heap_(std::move(heap)),
          backing_(std::move(backing)) {}

    ~Allocation() override {
        heap_->Release(*this);
        Shared* shared = heap_->shared_.GetIfMade();
        backing_.Free(shared == nullptr ? nullptr : &shared->arena);
    }

    Result<UniqueFd> ExportFile() const override {
        return backing_.file.valid() ? DuplicateFile(backing_.file.get()) : Memory::ExportFile();
    }

    Status MapAt(void* address, uint64_t offset_bytes, uint64_t size_bytes) const override {
        if (backing_.kind != Backing::Kind::kSharedPages) {
            return Memory::MapAt(address, offset_bytes, size_bytes);
        }
        // An old size of nothing asks for a second mapping of shared pages.
        const uint64_t page_bytes = RoundUp(size_bytes, kMemoryPageBytes);
        if (mremap(host_pointer() + offset_bytes, 0, page_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                   address) == MAP_FAILED) {
            return SystemError(ErrorCode::kIo,
                               fmt::format("{} bytes cannot be mapped at {}", page_bytes, address));
        }
        return OkStatus();
    }

    const Backing& backing() const { return backing_; }

  private:
    std::shared_ptr<HostHeap> heap_;
    Backing backing_;
};

Result<UniqueFd> Memory::ExportFile() const {
    return Error{ErrorCode::kUnsupported, "The memory was not allocated to be exported."};
}

Status Memory::MapAt(void*, uint64_t, uint64_t) const {
    return Error{ErrorCode::kUnsupported, "The memory was not allocated to be mapped anywhere."};
}

Status UnmapAt(void* address, uint64_t size_bytes, bool reserve) {
    const uint64_t page_bytes = RoundUp(size_bytes, kMemoryPageBytes);
    const bool done =
        reserve ? mmap(address, page_bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED
                : munmap(address, page_bytes) == 0;
    return done ? OkStatus()
                : Status(SystemError(ErrorCode::kIo, fmt::format("{} bytes at {} stay mapped",
                                                                 page_bytes, address)));
}

HostHeap::Backing HostHeap::TakeBacking(uint64_t size_bytes, uint64_t reserved_bytes) {
    if (guard_) {
        return Backing::TakeGuarded(size_bytes);
    }
    if (reserved_bytes >= SlabArena::kLeastMappedBytes) {
        std::byte* pages = Map(reserved_bytes);
        return {.pointer = pages, .mapping = pages, .mapped_bytes = reserved_bytes};
    }
    SlabArena& arena = shared_.Get().arena;
    const SlabArena::Piece piece = arena.Take(reserved_bytes);
    return {.pointer = piece.pointer,
            .kind = Backing::Kind::kSlab,
            .arena = &arena,
            .slab = piece.slab};
}

Result<std::shared_ptr<Memory>> HostHeap::Allocate(uint64_t size_bytes,
                                                   const MemoryOptions& options) {
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
    const bool shared = options.exportable || options.placeable;
    const uint64_t reserved_bytes = RoundUp(
        size_bytes, shared || size_bytes >= kMemoryPageBytes ? kMemoryPageBytes : kMemoryAlignment);
    do {
        if (reserved_bytes > limit_bytes_ - std::min(limit_bytes_, used_bytes)) {
            return out_of_memory(used_bytes);
        }
    } while (!used_bytes_.compare_exchange_weak(used_bytes, used_bytes + reserved_bytes));

    Backing backing;
    if (options.exportable) {
        auto file = CreateSharedFile("fornax-memory", reserved_bytes);
        if (!file) {
            used_bytes_.fetch_sub(reserved_bytes);
            return file.error();
        }
        backing = Backing::TakeShared(std::move(*file), reserved_bytes, guard_);
    } else if (shared) {
        backing = Backing::TakeShared({}, reserved_bytes, guard_);
    } else {
        backing = TakeBacking(size_bytes, reserved_bytes);
    }
    if (backing.pointer == nullptr) {
        used_bytes_.fetch_sub(reserved_bytes);
        return Error{ErrorCode::kOutOfDeviceMemory,
                     fmt::format("The host has no {} bytes for a device allocation.", size_bytes)};
    }
    backing.charged_bytes = reserved_bytes;
    return Adopt(std::move(backing), size_bytes);
}

Result<std::shared_ptr<Memory>> HostHeap::ImportFile(int file, uint64_t size_bytes) {
    FORNAX_RETURN_IF_ERROR(CheckSharedFile(file, size_bytes));
    FORNAX_ASSIGN_OR_RETURN(UniqueFd copy, DuplicateFile(file));
    Backing backing =
        Backing::TakeShared(std::move(copy), RoundUp(size_bytes, kMemoryPageBytes), guard_);
    if (backing.pointer == nullptr) {
        return SystemError(ErrorCode::kOutOfDeviceMemory,
                           fmt::format("{} bytes of a file cannot be mapped", size_bytes));
    }
    return Adopt(std::move(backing), size_bytes);
}

Result<std::shared_ptr<Memory>> HostHeap::ImportHost(void* pointer, uint64_t size_bytes) {
    if (reinterpret_cast<uint64_t>(pointer) % kMemoryPageBytes != 0 ||
        size_bytes % kMemoryPageBytes != 0 || size_bytes == 0) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} bytes at {} are not whole pages of {} bytes.", size_bytes,
                                 pointer, kMemoryPageBytes)};
    }
    // Does nothing, but notices a hole.
    if (msync(pointer, size_bytes, MS_ASYNC) != 0) {
        return SystemError(ErrorCode::kInvalidArgument,
                           fmt::format("{} bytes at {} are not all mapped", size_bytes, pointer));
    }
    return Adopt({.pointer = static_cast<std::byte*>(pointer), .kind = Backing::Kind::kHost},
                 size_bytes);
}

Result<std::shared_ptr<Memory>> HostHeap::Adopt(Backing backing, uint64_t size_bytes) {
    const auto begin = reinterpret_cast<uint64_t>(backing.pointer);
    const uint64_t charged_bytes = backing.charged_bytes;
    std::shared_ptr<Allocation> memory;
    try {
        const bool host = backing.kind == Backing::Kind::kHost;
        memory = std::make_shared<Allocation>(shared_from_this(), std::move(backing), size_bytes);
        Shared& shared = shared_.Get();
        std::unique_lock lock(shared.mutex);
        if (host) {
            shared.host_ranges.push_back({begin, begin + size_bytes});
        } else {
            shared.ranges.emplace(begin, begin + size_bytes);
        }
        return std::shared_ptr<Memory>(memory);
    } catch (const std::bad_alloc&) {
        if (memory == nullptr) {  // else it frees what it stands on
            Shared* shared = shared_.GetIfMade();
            backing.Free(shared == nullptr ? nullptr : &shared->arena);
            used_bytes_.fetch_sub(charged_bytes);
        }
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

HostHeap::Range HostHeap::Find(uint64_t address, uint64_t size_bytes) const {
    Shared& shared = shared_.Get();
    std::shared_lock lock(shared.mutex);
    auto next = shared.ranges.upper_bound(address);
    if (next != shared.ranges.begin()) {
        --next;
        const Range range{next->first, next->second};
        if (range.Contains(address, size_bytes)) {
            return range;
        }
    }
    for (const Range& range : shared.host_ranges) {
        if (range.Contains(address, size_bytes)) {
            return range;
        }
    }
    return {};
}

void HostHeap::Release(const Allocation& allocation) {
    if (Shared* shared = shared_.GetIfMade()) {
        std::unique_lock lock(shared->mutex);
        auto& host_ranges = shared->host_ranges;
        if (allocation.backing().kind == Backing::Kind::kHost) {
            const auto found = std::ranges::find_if(host_ranges, [&](const Range& range) {
                return range.begin == allocation.address() &&
                       range.end - range.begin == allocation.size_bytes();
            });
            if (found != host_ranges.end()) {
                host_ranges.erase(found);
            }
        } else {
            shared->ranges.erase(allocation.address());
        }
    }
    frees_.fetch_add(1, std::memory_order_release);
    used_bytes_.fetch_sub(allocation.backing().charged_bytes);
}

bool HeapView::Search(uint64_t address, uint64_t size_bytes) {
    const uint64_t frees = heap_.frees_.load(std::memory_order_acquire);
    if (frees != frees_) {
        recent_ = {};
        frees_ = frees;
    }
    const HostHeap::Range range = heap_.Find(address, size_bytes);
    if (!range.Contains(address, size_bytes)) {
        return false;
    }
    recent_[next_] = range;
    next_ = (next_ + 1) % recent_.size();
    return true;
}

}  // namespace fornax::hal

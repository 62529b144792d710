// Device memory: what kernels, copies, fills, events and queries read and write.
//
// The device only touches memory that it allocated itself (and the side data of the command streams
// that it runs); every address in a packet is checked against that. So descriptor sets, query slots
// and event cells that the driver hands to the device lie in a Memory, too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/file.h"
#include "base/result.h"

namespace fornax::hal {

// Every allocation starts at a multiple of this; one of kMemoryPageBytes or more starts on a page,
// unless FORNAX_GUARD has it end on one.
inline constexpr uint64_t kMemoryAlignment = 64;
inline constexpr uint64_t kMemoryPageBytes = 4096;

// How memory can be reached beside its own address; costs small pages and a page at least.
struct MemoryOptions {
    bool exportable = false;  // ExportFile is there
    bool placeable = false;   // MapAt is there, as it is for exportable memory
};

// One allocation, made by Device::AllocateMemory and freed with its last reference; or what
// Device::ImportMemoryFile or ImportHostMemory made of another's. An allocation's contents
// start as zeros. Its pages hold nothing but device memory. Immutable but for its bytes; any thread
// may hold and use it. Freeing it while pending work uses it is the caller's error: the device
// notices only where it can.
class Memory {
  public:
    virtual ~Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    // The address that packets and descriptors carry. In the model it equals the host pointer.
    uint64_t address() const { return address_; }

    // Where the host sees the memory, coherently and for as long as it lives; null when a backend's
    // memory is not visible to the host (never in the model).
    std::byte* host_pointer() const { return host_pointer_; }

    uint64_t size_bytes() const { return size_bytes_; }

    // The file behind exportable or imported memory, for ImportMemoryFile of any device in any
    // process; the memory lives until nobody has it. kUnsupported for other memory.
    virtual Result<UniqueFd> ExportFile() const;

    // Lets the host see a range at `address` as well, instead of what was mapped there; all three
    // are multiples of kMemoryPageBytes, but that the range may end with the memory. kUnsupported
    // for memory that is not placeable, kIo when the system refuses. The mapping stays until
    // UnmapAt, even when the memory is gone.
    virtual Status MapAt(void* address, uint64_t offset_bytes, uint64_t size_bytes) const;

  protected:
    Memory(uint64_t address, std::byte* host_pointer, uint64_t size_bytes)
        : address_(address), host_pointer_(host_pointer), size_bytes_(size_bytes) {}

  private:
    uint64_t address_;
    std::byte* host_pointer_;
    uint64_t size_bytes_;
};

// Ends a mapping of Memory::MapAt. With `reserve` nothing else is mapped there by accident: the
// range stays taken, and may not be accessed.
Status UnmapAt(void* address, uint64_t size_bytes, bool reserve);

// The state of the device's one heap, in bytes.
struct HeapState {
    uint64_t size_bytes = 0;  // the limit: FORNAX_HEAP_BYTES, else a share of the machine's memory
    uint64_t used_bytes = 0;  // by allocations that live; imported memory is another's
    uint64_t budget_bytes =
        0;  // how much this process can expect to use in all, at most size_bytes
};

}  // namespace fornax::hal

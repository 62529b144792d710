// A cache beside the memory controller, which all cores share: what was touched last need not come
// from DRAM again.
//
// Source: the least recently used replacement of J. Hennessy and D. Patterson, "Computer
// Architecture", appendix B, write-back and fully associative, in parts of 32 KiB: a dispatch
// touches long ranges. LRU keeps what a smaller cache keeps (R. Mattson et al., "Evaluation
// techniques for storage hierarchies", 1970), so that a larger one never reads more. A store takes
// a part without reading it first, or reads it (write-allocate, appendix B): whole bursts are
// written by DMA, lines of processors by stores of a part. A part that was written goes to DRAM
// when another takes its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>

namespace fornax::npu {

// Where the bytes of an access lie. Memories are what a program names, and do not overlap.
struct MemoryRange {
    uint64_t memory = 0;  // 0: not known
    uint64_t begin = 0;
    uint64_t bytes = 0;
    bool operator==(const MemoryRange&) const = default;
};

// Bytes between the cache and DRAM.
struct CacheTraffic {
    uint64_t read = 0;
    uint64_t written = 0;
    CacheTraffic& operator+=(const CacheTraffic& other) {
        read += other.read;
        written += other.written;
        return *this;
    }
};

class MemoryCache {
  public:
    static constexpr uint64_t kPartBytes = 32 * 1024;

    explicit MemoryCache(uint64_t bytes) : parts_(bytes / kPartBytes) {}

    // An access that moves `bytes` of the range; more than the range has are bytes that are moved
    // again, which the cache serves if it holds the whole range.
    CacheTraffic Read(const MemoryRange& range, uint64_t bytes) {
        return Touch(range, bytes, Use::kRead);
    }
    // `fetches`: what the cache does not hold is read first.
    CacheTraffic Write(const MemoryRange& range, uint64_t bytes, bool fetches = false) {
        return Touch(range, bytes, fetches ? Use::kFetchAndWrite : Use::kWrite);
    }

    bool Holds(uint64_t bytes) const { return bytes <= parts_ * kPartBytes; }

  private:
    enum class Use : uint8_t { kRead, kWrite, kFetchAndWrite };
    struct Part {
        uint64_t memory = 0;
        uint64_t number = 0;
        uint64_t dirty_bytes = 0;
        bool operator==(const Part& other) const {
            return memory == other.memory && number == other.number;
        }
    };
    struct PartHash {
        size_t operator()(const Part& part) const {
            return part.memory * 0x9E3779B97F4A7C15u ^ part.number * 0xC2B2AE3D27D4EB4Fu;
        }
    };

    CacheTraffic Touch(const MemoryRange& range, uint64_t bytes, Use use);
    void TouchPart(const Part& part, uint64_t bytes, Use use, CacheTraffic& traffic);
    // What passes by the cache, or is not in it.
    static void AddMissed(Use use, uint64_t bytes, CacheTraffic& traffic);

    uint64_t parts_;
    std::list<Part> used_;  // the last one first
    std::unordered_map<Part, std::list<Part>::iterator, PartHash> held_;
};

}  // namespace fornax::npu

#include "npu/units/memory_cache.h"

#include <random>

#include <gtest/gtest.h>

namespace fornax::npu {
namespace {

constexpr uint64_t kPart = MemoryCache::kPartBytes;

MemoryRange Parts(uint64_t memory, uint64_t begin, uint64_t count) {
    return {.memory = memory, .begin = begin * kPart, .bytes = count * kPart};
}

TEST(NpuMemoryCache, ServesWhatWasTouchedLast) {
    MemoryCache cache(4 * kPart);
    EXPECT_EQ(cache.Read(Parts(1, 0, 3), 3 * kPart).read, 3 * kPart);
    EXPECT_EQ(cache.Read(Parts(1, 0, 3), 3 * kPart).read, 0U);
    // Another memory's first part is another one.
    EXPECT_EQ(cache.Read(Parts(2, 0, 1), kPart).read, kPart);
    EXPECT_EQ(cache.Read(Parts(2, 1, 1), kPart).read, kPart);
    // That took the place of the part that had not been touched for longest.
    EXPECT_EQ(cache.Read(Parts(1, 1, 2), 2 * kPart).read, 0U);
    EXPECT_EQ(cache.Read(Parts(1, 0, 1), kPart).read, kPart);
}

TEST(NpuMemoryCache, WritesWhatIsDirtyWhenItLeaves) {
    MemoryCache cache(2 * kPart);
    const CacheTraffic stored = cache.Write(Parts(1, 0, 2), 2 * kPart);
    EXPECT_EQ(stored.read + stored.written, 0U);
    // What is overwritten in the cache never reaches DRAM.
    EXPECT_EQ(cache.Write(Parts(1, 0, 2), 2 * kPart).written, 0U);
    const CacheTraffic read = cache.Read(Parts(2, 0, 2), 2 * kPart);
    EXPECT_EQ(read.read, 2 * kPart);
    EXPECT_EQ(read.written, 2 * kPart);
    EXPECT_EQ(cache.Read(Parts(3, 0, 2), 2 * kPart).written, 0U);
}

TEST(NpuMemoryCache, StoresMayReadWhatTheyMiss) {
    MemoryCache cache(2 * kPart);
    EXPECT_EQ(cache.Write(Parts(1, 0, 2), 2 * kPart, /*fetches=*/true).read, 2 * kPart);
    EXPECT_EQ(cache.Write(Parts(1, 0, 2), 2 * kPart, /*fetches=*/true).read, 0U);
    EXPECT_EQ(cache.Read(Parts(1, 0, 2), 2 * kPart).read, 0U);
    // What is too long for the cache, and what it cannot keep for the second time.
    constexpr uint64_t kLong = uint64_t{1} << 30;
    EXPECT_EQ(cache.Write({.memory = 2, .bytes = kLong}, kLong, /*fetches=*/true).read, kLong);
    EXPECT_EQ(cache.Write(Parts(3, 0, 4), 8 * kPart, /*fetches=*/true).read, 8 * kPart);
}

TEST(NpuMemoryCache, ServesBytesThatAreReadAgainIfItHoldsTheRange) {
    MemoryCache cache(4 * kPart);
    EXPECT_EQ(cache.Read(Parts(1, 0, 4), 40 * kPart).read, 4 * kPart);
    EXPECT_EQ(cache.Read(Parts(2, 0, 5), 50 * kPart).read, 50 * kPart);
    // A part of a range.
    EXPECT_EQ(cache.Read(Parts(3, 0, 4), 100).read, 100U);
}

TEST(NpuMemoryCache, LongStreamsPass) {
    MemoryCache cache(4 * kPart);
    constexpr uint64_t kLong = uint64_t{1} << 48;
    EXPECT_EQ(cache.Read({.memory = 1, .begin = 0, .bytes = kLong}, kLong).read, kLong);
    const CacheTraffic written = cache.Write({.memory = 2, .begin = 5, .bytes = kLong}, kLong);
    // The last parts are still there.
    EXPECT_GE(written.written, kLong - 5 * kPart);
    EXPECT_LE(written.written, kLong);
    MemoryCache none(0);
    EXPECT_EQ(none.Read(Parts(1, 0, 1), kPart).read, kPart);
    EXPECT_EQ(none.Write(Parts(1, 0, 1), kPart).written, kPart);
}

TEST(NpuMemoryCache, ALargerOneNeverReadsMore) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
        std::mt19937_64 random(seed);
        MemoryCache small(8 * kPart), large(9 * kPart);
        uint64_t of_small = 0, of_large = 0;
        for (int i = 0; i < 200; ++i) {
            const MemoryRange range = Parts(1 + random() % 3, random() % 4, 1 + random() % 12);
            const uint64_t bytes = range.bytes + random() % 2 * kPart;
            if (random() % 3 == 0) {
                small.Write(range, bytes);
                large.Write(range, bytes);
            } else {
                of_small += small.Read(range, bytes).read;
                of_large += large.Read(range, bytes).read;
            }
            EXPECT_LE(of_large, of_small);
        }
    }
}

}  // namespace
}  // namespace fornax::npu

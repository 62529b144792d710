// Copies and fills that are larger than the caches, which are written past them.
#include "hal/model/transfer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "hal/model/cache_share.h"

namespace fornax::hal::model {
namespace {

constexpr uint32_t kWorkers = 2;
constexpr std::byte kUntouched{0xA5};

std::vector<std::byte> Pattern(size_t size_bytes) {
    std::vector<std::byte> bytes(size_bytes);
    uint32_t state = 1;
    for (std::byte& byte : bytes) {
        state = state * 1'664'525 + 1'013'904'223;
        byte = static_cast<std::byte>(state >> 24);
    }
    return bytes;
}

TEST(Transfer, LargeCopiesAtEveryAlignment) {
    WorkerPool pool(kWorkers, std::make_shared<WaitHub>(nullptr));
    Worker self(0);
    const size_t size_bytes = CacheShareBytes(kWorkers) / 2 + 12'345;
    const std::vector<std::byte> source = Pattern(size_bytes + 64);
    std::vector<std::byte> destination(size_bytes + 128);
    for (const size_t to : {0, 1, 16, 32, 63}) {
        for (const size_t from : {0, 5}) {
            std::ranges::fill(destination, kUntouched);
            ASSERT_TRUE(CopyBytes(pool, self, reinterpret_cast<uint64_t>(source.data() + from),
                                  reinterpret_cast<uint64_t>(destination.data() + to), size_bytes)
                            .ok());
            const auto begin = destination.begin() + static_cast<ptrdiff_t>(to);
            const auto end = begin + static_cast<ptrdiff_t>(size_bytes);
            EXPECT_TRUE(std::equal(begin, end, source.begin() + static_cast<ptrdiff_t>(from)))
                << "from " << from << " to " << to;
            const auto untouched = [](std::byte byte) { return byte == kUntouched; };
            EXPECT_TRUE(std::all_of(destination.begin(), begin, untouched));
            EXPECT_TRUE(std::all_of(end, destination.end(), untouched));
        }
    }
}

TEST(Transfer, LargeFills) {
    WorkerPool pool(kWorkers, std::make_shared<WaitHub>(nullptr));
    Worker self(0);
    const size_t words = CacheShareBytes(kWorkers) / sizeof(uint32_t) + 1'003;
    std::vector<uint32_t> memory(words + 32);
    for (const size_t first : {0, 1, 15}) {
        std::ranges::fill(memory, 7u);
        ASSERT_TRUE(FillBytes(pool, self, reinterpret_cast<uint64_t>(memory.data() + first),
                              words * sizeof(uint32_t), 0x01020304)
                        .ok());
        for (size_t i = 0; i < memory.size(); ++i) {
            const bool inside = i >= first && i < first + words;
            ASSERT_EQ(memory[i], inside ? 0x01020304u : 7u) << "word " << i << ", from " << first;
        }
    }
}

TEST(Transfer, CacheShareGrowsWithWorkers) {
    EXPECT_GT(CacheShareBytes(1), 0u);
    EXPECT_LE(CacheShareBytes(1), CacheShareBytes(2));
    EXPECT_LE(CacheShareBytes(2), CacheShareBytes(64));
}

}  // namespace
}  // namespace fornax::hal::model

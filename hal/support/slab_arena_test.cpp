// Pieces of slabs: apart, aligned, zeroed, given back.
#include "hal/support/slab_arena.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace fornax::hal {
namespace {

constexpr uint64_t kSizes[] = {1, 63, 64, 65, 1'000, 4'032, 4'095, 4'096, 4'097, 100'000, 131'071};

bool IsZero(const std::byte* begin, uint64_t size_bytes) {
    return std::all_of(begin, begin + size_bytes, [](std::byte b) { return b == std::byte{0}; });
}

TEST(SlabArena, PiecesAreAlignedZeroedAndApart) {
    SlabArena arena;
    std::mt19937 random(1);
    struct Held {
        SlabArena::Piece piece;
        uint64_t size_bytes;
        std::byte fill;
    };
    std::map<std::byte*, Held> held;
    for (int step = 0; step < 5'000; ++step) {
        if (held.size() < 500 && random() % 3 != 0) {
            const uint64_t size_bytes = kSizes[random() % std::size(kSizes)];
            const SlabArena::Piece piece = arena.Take(size_bytes);
            ASSERT_NE(piece.pointer, nullptr);
            const auto address = reinterpret_cast<uint64_t>(piece.pointer);
            EXPECT_EQ(
                address % (size_bytes < kMemoryPageBytes ? kMemoryAlignment : kMemoryPageBytes),
                0u);
            ASSERT_TRUE(IsZero(piece.pointer, size_bytes)) << size_bytes;
            const auto fill = static_cast<std::byte>(1 + random() % 255);
            std::memset(piece.pointer, static_cast<int>(fill), size_bytes);
            const bool fresh = held.emplace(piece.pointer, Held{piece, size_bytes, fill}).second;
            ASSERT_TRUE(fresh);
        } else if (!held.empty()) {
            auto one = std::next(held.begin(), static_cast<long>(random() % held.size()));
            const Held& last = one->second;
            ASSERT_TRUE(std::all_of(one->first, one->first + last.size_bytes, [&](std::byte b) {
                return b == last.fill;
            })) << "another piece lay over it";
            arena.Return(last.piece);
            held.erase(one);
        }
    }
    for (const auto& [pointer, one] : held) {
        arena.Return(one.piece);
    }
}

TEST(SlabArena, KeepsNoMoreThanASlabOfEachSize) {
    SlabArena arena;
    EXPECT_EQ(arena.mapped_bytes(), 0u);
    for (const uint64_t size_bytes : {uint64_t{64}, uint64_t{100'000}}) {
        const uint64_t before = arena.mapped_bytes();
        SlabArena::Piece first = arena.Take(size_bytes);
        const uint64_t one = arena.mapped_bytes() - before;
        std::vector<SlabArena::Piece> pieces;
        while (arena.mapped_bytes() < before + 4 * one) {
            pieces.push_back(arena.Take(size_bytes));
            std::memset(pieces.back().pointer, 1, size_bytes);
        }
        for (const SlabArena::Piece& piece : pieces) {
            arena.Return(piece);
        }
        arena.Return(first);
        EXPECT_EQ(arena.mapped_bytes(), before + one);
        const SlabArena::Piece again = arena.Take(size_bytes);
        EXPECT_TRUE(IsZero(again.pointer, size_bytes));
        arena.Return(again);
        EXPECT_EQ(arena.mapped_bytes(), before + one);
    }
}

TEST(SlabArenaDeathTest, NothingLiesBeforeOrBehindASlab) {
    SlabArena arena;
    for (const uint64_t size_bytes : {uint64_t{64}, uint64_t{100'000}}) {
        std::vector<SlabArena::Piece> pieces = {arena.Take(size_bytes)};
        const uint64_t one = arena.mapped_bytes();
        while (arena.mapped_bytes() == one) {  // until the first slab is full
            pieces.push_back(arena.Take(size_bytes));
        }
        pieces.pop_back();
        std::byte* first = pieces.front().pointer;
        // The slab ends with the page that its last piece ends in.
        std::byte* last = pieces.back().pointer;
        const uint64_t used = reinterpret_cast<uintptr_t>(last) + size_bytes;
        std::byte* end = last + size_bytes + (0 - used) % kMemoryPageBytes;
        EXPECT_DEATH(*const_cast<volatile std::byte*>(first - 1) = std::byte{1}, "");
        EXPECT_DEATH(*const_cast<volatile std::byte*>(end) = std::byte{1}, "");
    }
}

}  // namespace
}  // namespace fornax::hal

#include "compiler/kernel/cache/cache_entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fornax::kernel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Hash128 kKey = {0x1234, 0x5678};
constexpr UserSecret kSecret = {{std::byte{1}, std::byte{2}}};

CacheEntryFacts Facts() {
    return {.workgroup_size = {8, 4, 2},
            .shared_bytes = 100,
            .scratch_bytes = 200,
            .used_sets = 0b101,
            .independent_workgroups = true,
            .name = "main",
            .deciding_words = {{.set = 0, .offset_bytes = 16}, {.set = 2, .offset_bytes = 64}}};
}

std::vector<uint8_t> Entry() {
    const uint8_t object[] = {1, 2, 3, 4, 5};
    return SerializeEntry(kSecret, kKey, Facts(), object);
}

TEST(CacheEntry, ComesBack) {
    std::vector<uint8_t> bytes = Entry();
    Result<ParsedEntry> entry = ParseEntry(kSecret, kKey, bytes);
    ASSERT_TRUE(entry.ok()) << entry.error().message;
    EXPECT_THAT(entry->facts.workgroup_size, ElementsAre(8, 4, 2));
    EXPECT_EQ(entry->facts.shared_bytes, 100u);
    EXPECT_EQ(entry->facts.scratch_bytes, 200u);
    EXPECT_EQ(entry->facts.used_sets, 0b101u);
    EXPECT_TRUE(entry->facts.independent_workgroups);
    EXPECT_EQ(entry->facts.name, "main");
    EXPECT_EQ(entry->facts.deciding_words, Facts().deciding_words);
    EXPECT_THAT(entry->object, ElementsAre(1, 2, 3, 4, 5));
}

TEST(CacheEntry, OnlyKernelsWithDecidingWordsComeWithoutCode) {
    CacheEntryFacts facts = Facts();
    Result<ParsedEntry> entry = ParseEntry(kSecret, kKey, SerializeEntry(kSecret, kKey, facts, {}));
    ASSERT_TRUE(entry.ok()) << entry.error().message;
    EXPECT_EQ(entry->facts.deciding_words, facts.deciding_words);
    EXPECT_TRUE(entry->object.empty());
    facts.deciding_words.clear();
    entry = ParseEntry(kSecret, kKey, SerializeEntry(kSecret, kKey, facts, {}));
    ASSERT_FALSE(entry.ok());
    EXPECT_THAT(entry.error().message, HasSubstr("no code"));
}

TEST(CacheEntry, IsRefusedUnderAnotherKeyOrSecret) {
    std::vector<uint8_t> bytes = Entry();
    Result<ParsedEntry> entry = ParseEntry(kSecret, {kKey.high, kKey.low + 1}, bytes);
    ASSERT_FALSE(entry.ok());
    EXPECT_EQ(entry.error().code, ErrorCode::kDataLoss);
    EXPECT_THAT(entry.error().message, HasSubstr("another request"));
    UserSecret other = kSecret;
    other.bytes[31] = std::byte{1};
    entry = ParseEntry(other, kKey, bytes);
    ASSERT_FALSE(entry.ok());
    EXPECT_THAT(entry.error().message, HasSubstr("digest"));
}

TEST(CacheEntry, EveryDamagedBitAndEveryOtherLengthIsRefused) {
    const std::vector<uint8_t> bytes = Entry();
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        std::vector<uint8_t> damaged = bytes;
        damaged[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
        EXPECT_FALSE(ParseEntry(kSecret, kKey, damaged).ok()) << bit;
    }
    for (size_t size = 0; size < bytes.size(); ++size) {
        EXPECT_FALSE(ParseEntry(kSecret, kKey, std::span(bytes).first(size)).ok()) << size;
    }
    std::vector<uint8_t> longer = bytes;
    longer.push_back(0);
    EXPECT_FALSE(ParseEntry(kSecret, kKey, longer).ok());
}

}  // namespace
}  // namespace fornax::kernel

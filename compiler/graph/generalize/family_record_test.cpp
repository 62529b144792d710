#include "compiler/graph/generalize/family_record.h"

#include <gtest/gtest.h>

namespace fornax::graph {
namespace {

const Hash128 kFamily = {1, 2};

FamilyRecord Example() {
    FamilyRecord record;
    record.AddSample({7, 1, 2, 3});
    record.AddBasis({{1, 1, 2, 3}, {2, 1, 4, -3}});
    record.AddBasis({{2, 1, 4, -3}, {5, 1, 2, 3}, {8, 1, 9, 9}});
    return record;
}

TEST(FamilyRecord, ReadsWhatItWrites) {
    for (const FamilyRecord& record : {Example(), FamilyRecord()}) {
        const Result<FamilyRecord> read = ParseFamily(SerializeFamily(kFamily, record), kFamily);
        ASSERT_TRUE(read.ok()) << read.error().message;
        EXPECT_EQ(*read, record);
    }
}

TEST(FamilyRecord, DamageIsSeen) {
    const std::vector<std::byte> bytes = SerializeFamily(kFamily, Example());
    EXPECT_FALSE(ParseFamily(bytes, {2, 1}).ok());
    for (size_t i = 0; i < bytes.size(); ++i) {
        EXPECT_FALSE(ParseFamily(std::span(bytes).first(i), kFamily).ok()) << i;
        std::vector<std::byte> damaged = bytes;
        damaged[i] ^= std::byte{1};
        EXPECT_FALSE(ParseFamily(damaged, kFamily).ok()) << i;
    }
}

// With the right checksum, as somebody would write it who wants to do harm.
TEST(FamilyRecord, NoNumberLeadsOutside) {
    constexpr size_t kDigest = 16;
    const std::vector<std::byte> bytes = SerializeFamily(kFamily, Example());
    for (size_t i = 24; i + 4 + kDigest <= bytes.size(); i += 4) {
        for (const uint32_t value : {0U, 1U, 5U, 1U << 22, UINT32_MAX}) {
            std::vector<std::byte> changed(bytes.begin(), bytes.end() - kDigest);
            std::memcpy(changed.data() + i, &value, sizeof(value));
            const Hash128 digest = HashBytes(changed);
            for (const uint64_t half : {digest.high, digest.low}) {
                const auto* from = reinterpret_cast<const std::byte*>(&half);
                changed.insert(changed.end(), from, from + sizeof(half));
            }
            const Result<FamilyRecord> read = ParseFamily(changed, kFamily);
            if (!read.ok()) {
                continue;
            }
            for (const FamilyRecord::Basis& basis : read->bases) {
                ASSERT_GE(basis.size(), FamilyRecord::kLeastMembers);
                ASSERT_LE(basis.size(), FamilyRecord::kMostMembers);
                EXPECT_EQ(basis.front().size(), basis.back().size());
            }
            EXPECT_LE(read->samples.size(), FamilyRecord::kMostSamples);
        }
    }
}

TEST(FamilyRecord, KeepsTheLast) {
    FamilyRecord record;
    for (int64_t i = 0; i < 10; ++i) {
        record.AddSample({i});
        record.AddBasis({{100}, {200 + i}});
    }
    EXPECT_EQ(record.samples.size(), FamilyRecord::kMostSamples);
    EXPECT_EQ(record.samples.back(), FamilyRecord::Sizes{9});
    EXPECT_EQ(record.bases.size(), FamilyRecord::kMostBases);
    // What became part of a basis is no sample any more, and what is there is not added twice.
    record.AddBasis({{9}, {8}});
    record.AddSample({7});
    EXPECT_EQ(record.samples.size(), 2U);
    FamilyRecord other;
    other.Merge(record);
    other.Merge(record);
    EXPECT_EQ(other, record);
}

}  // namespace
}  // namespace fornax::graph

// Hasher keeps fields apart; hexadecimal names round-trip; the checksum is XXH3.
#include "base/hash.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>
#include <unordered_set>
#include <vector>

namespace fornax {
namespace {

std::span<const std::byte> Bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}

TEST(Hash128Test, HexRoundTrips) {
    const Hash128 hash{0x0123456789abcdefu, 0xfedcba9876543210u};
    EXPECT_EQ(hash.ToHex(), "0123456789abcdeffedcba9876543210");
    EXPECT_EQ(Hash128::FromHex(hash.ToHex()), hash);
}

TEST(Hash128Test, FromHexRefusesEverythingElse) {
    EXPECT_FALSE(Hash128::FromHex(""));
    EXPECT_FALSE(Hash128::FromHex("0123456789abcdeffedcba987654321"));
    EXPECT_FALSE(Hash128::FromHex("0123456789abcdeffedcba98765432100"));
    EXPECT_FALSE(Hash128::FromHex("0123456789ABCDEFfedcba9876543210"));
    EXPECT_FALSE(Hash128::FromHex("0123456789abcdeffedcba987654321g"));
    EXPECT_FALSE(Hash128::FromHex("-123456789abcdeffedcba9876543210"));
}

// Published test values of XXH3-128: the checksum on disk is the algorithm it claims to be.
TEST(HashBytesTest, IsXxh3) {
    EXPECT_EQ(HashBytes({}).ToHex(), "99aa06d3014798d86001c324468d497f");
    EXPECT_EQ(HashBytes(Bytes("a")).ToHex(), "a96faf705af16834e6c632b61e964e1f");
}

TEST(HasherTest, SameFieldsGiveTheSameHash) {
    const auto make = [] {
        Hasher hasher;
        hasher.Append(7u).Append("name").Append(1.5f).Append(Hash128{1, 2});
        return hasher.Finish();
    };
    EXPECT_EQ(make(), make());
}

// Every pair of these sequences would be equal without types, lengths or order.
TEST(HasherTest, FieldsDoNotRunIntoEachOther) {
    enum class Small : uint8_t { kOne = 1 };
    std::vector<Hash128> hashes;
    const auto add = [&hashes](auto&& fill) {
        Hasher hasher;
        fill(hasher);
        hashes.push_back(hasher.Finish());
    };
    const std::array<uint8_t, 2> pair = {1, 1};
    add([](Hasher&) {});
    add([](Hasher& h) { h.Append(""); });
    add([](Hasher& h) { h.AppendBytes({}); });
    add([](Hasher& h) { h.AppendListSize(0); });
    add([](Hasher& h) { h.Append("ab").Append("c"); });
    add([](Hasher& h) { h.Append("a").Append("bc"); });
    add([](Hasher& h) { h.Append("abc"); });
    add([](Hasher& h) { h.AppendBytes(Bytes("abc")); });
    add([](Hasher& h) { h.Append(1u); });
    add([](Hasher& h) { h.Append(1); });
    add([](Hasher& h) { h.Append(uint64_t{1}); });
    add([](Hasher& h) { h.Append(true); });
    add([](Hasher& h) { h.Append(1.0f); });
    add([](Hasher& h) { h.Append(uint8_t{1}).Append(uint8_t{1}); });
    add([&pair](Hasher& h) { h.AppendArray(std::span(pair)); });
    add([](Hasher& h) { h.AppendListSize(1).Append(uint8_t{1}).Append(uint8_t{1}); });
    add([](Hasher& h) { h.AppendListSize(2).Append(uint8_t{1}).Append(uint8_t{1}); });
    add([](Hasher& h) { h.Append(Hash128{1, 0}); });
    add([](Hasher& h) { h.Append(Hash128{0, 1}); });
    add([](Hasher& h) { h.Append(uint64_t{1}).Append(uint64_t{0}); });
    add([](Hasher& h) { h.Append(0.0f); });
    add([](Hasher& h) { h.Append(-0.0f); });
    EXPECT_EQ(std::set<Hash128>(hashes.begin(), hashes.end()).size(), hashes.size());

    Hasher enumerator, integer;
    EXPECT_EQ(enumerator.Append(Small::kOne).Finish(), integer.Append(uint8_t{1}).Finish());
}

TEST(HasherTest, FinishDoesNotEndTheSequence) {
    Hasher in_steps, at_once;
    in_steps.Append(1u);
    const Hash128 first = in_steps.Finish();
    in_steps.Append(2u);
    at_once.Append(1u).Append(2u);
    EXPECT_NE(first, in_steps.Finish());
    EXPECT_EQ(in_steps.Finish(), at_once.Finish());
}

TEST(HasherTest, EveryByteOfALongArrayCounts) {
    std::vector<float> weights(100'000, 0.25f);
    const auto hash = [&weights] {
        Hasher hasher;
        return hasher.AppendArray(std::span<const float>(weights)).Finish();
    };
    std::unordered_set<Hash128> seen = {hash()};
    for (size_t index : {size_t{0}, weights.size() / 2, weights.size() - 1}) {
        weights[index] = 0.5f;
        EXPECT_TRUE(seen.insert(hash()).second) << index;
    }
}

}  // namespace
}  // namespace fornax

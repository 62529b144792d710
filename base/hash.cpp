// The hash of hash.h over xxhash's streaming XXH3.
#include "base/hash.h"

#include <fmt/format.h>
// The state's layout is only declared to those who link the library statically, as we do.
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <array>
#include <cstring>

namespace fornax {
namespace {

Hash128 FromXxh(const XXH128_hash_t& hash) {
    return {hash.high64, hash.low64};
}

// What stands before each field's bytes.
constexpr size_t kFieldPrefixBytes = 10;

}  // namespace

struct Hasher::State {
    XXH3_state_t xxh;
};

std::string Hash128::ToHex() const {
    return fmt::format("{:016x}{:016x}", high, low);
}

std::optional<Hash128> Hash128::FromHex(std::string_view hex) {
    if (hex.size() != 32) {
        return std::nullopt;
    }
    Hash128 hash;
    for (size_t i = 0; i < hex.size(); ++i) {
        const char c = hex[i];
        uint64_t digit;
        if (c >= '0' && c <= '9') {
            digit = static_cast<uint64_t>(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            digit = static_cast<uint64_t>(c - 'a') + 10;
        } else {
            return std::nullopt;
        }
        uint64_t& half = i < 16 ? hash.high : hash.low;
        half = half << 4 | digit;
    }
    return hash;
}

Hash128 HashBytes(std::span<const std::byte> bytes) {
    return FromXxh(XXH3_128bits(bytes.data(), bytes.size()));
}

struct ByteHasher::State {
    XXH3_state_t xxh;
};

ByteHasher::ByteHasher() : state_(std::make_unique<State>()) {
    XXH3_128bits_reset(&state_->xxh);
}
ByteHasher::~ByteHasher() = default;

void ByteHasher::Append(std::span<const std::byte> bytes) {
    XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

Hash128 ByteHasher::Finish() const {
    return FromXxh(XXH3_128bits_digest(&state_->xxh));
}

Hasher::Hasher() : state_(std::make_unique<State>()) {
    XXH3_128bits_reset(&state_->xxh);
}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::Append(std::string_view text) {
    AppendField(Tag::kText, text.data(), 1, text.size());
    return *this;
}

Hasher& Hasher::Append(const Hash128& hash) {
    const std::array<uint64_t, 2> halves = {hash.high, hash.low};
    AppendField(Tag::kHash, halves.data(), sizeof(uint64_t), halves.size());
    return *this;
}

Hasher& Hasher::AppendBytes(std::span<const std::byte> bytes) {
    AppendField(Tag::kBytes, bytes.data(), 1, bytes.size());
    return *this;
}

Hasher& Hasher::AppendListSize(size_t count) {
    AppendField(Tag::kList, nullptr, 0, count);
    return *this;
}

Hash128 Hasher::Finish() const {
    return FromXxh(XXH3_128bits_digest(&state_->xxh));
}

void Hasher::AppendField(Tag tag, const void* data, size_t element_bytes, size_t count) {
    // The tag, the element's size and the count fix how many bytes follow; so the bytes fed for a
    // sequence of fields can be read back in one way only.
    std::array<unsigned char, kFieldPrefixBytes> prefix;
    prefix[0] = static_cast<unsigned char>(tag);
    prefix[1] = static_cast<unsigned char>(element_bytes);
    const uint64_t count64 = count;
    std::memcpy(prefix.data() + 2, &count64, sizeof(count64));
    XXH3_128bits_update(&state_->xxh, prefix.data(), prefix.size());
    if (element_bytes * count > 0) {
        XXH3_128bits_update(&state_->xxh, data, element_bytes * count);
    }
}

}  // namespace fornax

// 128-bit hashes for cache keys: XXH3, fed field by field.
//
// Hasher writes each field with its type and length, so that no two different sequences of fields
// feed the same bytes ("ab","c" and "a","bc" differ; 1u and 1.0f differ). The value is stable
// between processes and machines of the same byte order. It is not a cryptographic hash: what must
// prove who wrote it has a keyed digest as well (disk_cache.h).
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace fornax {

struct Hash128 {
    uint64_t high = 0;
    uint64_t low = 0;

    auto operator<=>(const Hash128&) const = default;

    // 32 lower-case hexadecimal digits, the high half first.
    std::string ToHex() const;
    // The inverse of ToHex; nothing else is accepted.
    static std::optional<Hash128> FromHex(std::string_view hex);
};

// The plain XXH3-128 of some bytes: a checksum, without the framing of Hasher.
Hash128 HashBytes(std::span<const std::byte> bytes);

// The same of bytes that come in parts. Not thread-safe.
class ByteHasher {
  public:
    ByteHasher();
    ~ByteHasher();

    void Append(std::span<const std::byte> bytes);
    Hash128 Finish() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

template <typename T>
concept HashableScalar =
    (std::is_arithmetic_v<T> && !std::same_as<T, long double>) ||  // it has padding
    std::is_enum_v<T>;

// Not thread-safe. Cheap enough to make one a key (one allocation of half a kilobyte).
class Hasher {
  public:
    Hasher();
    ~Hasher();
    Hasher(Hasher&&) noexcept;
    Hasher& operator=(Hasher&&) noexcept;

    // A number, truth value or enumerator. Floating-point values count by their bits.
    template <HashableScalar T>
    Hasher& Append(T value) {
        AppendField(TagOf<T>(), &value, sizeof(value), 1);
        return *this;
    }
    Hasher& Append(std::string_view text);
    Hasher& Append(const char* text) { return Append(std::string_view(text)); }
    Hasher& Append(const Hash128& hash);

    // Elements in order, with their count.
    template <HashableScalar T, size_t Extent>
    Hasher& AppendArray(std::span<const T, Extent> values) {
        AppendField(TagOf<T>(), values.data(), sizeof(T), values.size());
        return *this;
    }
    Hasher& AppendBytes(std::span<const std::byte> bytes);

    // Announces `count` items of any fields that follow, where a list is hashed item by item.
    Hasher& AppendListSize(size_t count);

    // The hash of what was appended so far; appending may continue.
    Hash128 Finish() const;

  private:
    // Part of the hashed bytes: an enumerator's number never changes.
    enum class Tag : uint8_t {
        kBool = 1,
        kUnsigned = 2,
        kSigned = 3,
        kFloat = 4,
        kText = 5,
        kHash = 6,
        kBytes = 7,
        kList = 8,
    };

    template <typename T>
    static constexpr Tag TagOf() {
        if constexpr (std::is_enum_v<T>) {
            return TagOf<std::underlying_type_t<T>>();
        } else if constexpr (std::same_as<T, bool>) {
            return Tag::kBool;
        } else if constexpr (std::is_floating_point_v<T>) {
            return Tag::kFloat;
        } else {
            return std::is_signed_v<T> ? Tag::kSigned : Tag::kUnsigned;
        }
    }

    void AppendField(Tag tag, const void* data, size_t element_bytes, size_t count);

    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace fornax

template <>
struct std::hash<fornax::Hash128> {
    size_t operator()(const fornax::Hash128& hash) const noexcept { return hash.low; }
};

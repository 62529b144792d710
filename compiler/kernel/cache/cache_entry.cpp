#include "compiler/kernel/cache/cache_entry.h"

#include <cstring>
#include <type_traits>

namespace fornax::kernel {

namespace {

constexpr std::array<char, 8> kMagic = {'F', 'R', 'N', 'X', 'K', 'R', 'N', 'L'};

// In the host's byte order: native code does not travel between machines.
struct Header {
    std::array<char, 8> magic = kMagic;
    uint32_t version = kCacheEntryVersion;
    uint32_t name_bytes = 0;
    uint64_t object_bytes = 0;
    uint64_t key_high = 0;
    uint64_t key_low = 0;
    uint32_t workgroup_size[3] = {1, 1, 1};
    uint32_t shared_bytes = 0;
    uint32_t scratch_bytes = 0;
    uint32_t used_sets = 0;
    uint32_t independent_workgroups = 0;
    uint32_t deciding_words = 0;
    uint64_t cost_bytes = 0;  // 0: none
    KeyedDigest digest = {};
};
static_assert(sizeof(Header) == 112 && std::has_unique_object_representations_v<Header>);

// Covers the header with the digest's field zero, and all that follows it.
KeyedDigest Sign(const UserSecret& secret, Header header, std::span<const uint8_t> rest) {
    header.digest = {};
    const std::span<const std::byte> parts[] = {std::as_bytes(std::span(&header, 1)),
                                                std::as_bytes(rest)};
    return ComputeKeyedDigest(secret, parts);
}

Error Refuse(const char* reason) {
    return Error{ErrorCode::kDataLoss,
                 std::string("A stored kernel is not usable: ") + reason + "."};
}

}  // namespace

std::vector<uint8_t> SerializeEntry(const UserSecret& secret,
                                    const Hash128& key,
                                    const CacheEntryFacts& facts,
                                    std::span<const uint8_t> object) {
    Header header;
    header.name_bytes = static_cast<uint32_t>(facts.name.size());
    header.object_bytes = object.size();
    header.key_high = key.high;
    header.key_low = key.low;
    for (size_t i = 0; i < 3; ++i) {
        header.workgroup_size[i] = facts.workgroup_size[i];
    }
    header.shared_bytes = facts.shared_bytes;
    header.scratch_bytes = facts.scratch_bytes;
    header.used_sets = facts.used_sets;
    header.independent_workgroups = facts.independent_workgroups ? 1 : 0;
    header.deciding_words = static_cast<uint32_t>(facts.deciding_words.size());
    const std::vector<uint8_t> cost =
        facts.cost ? SerializeCost(*facts.cost) : std::vector<uint8_t>();
    header.cost_bytes = cost.size();
    std::vector<uint8_t> bytes(sizeof(header));
    bytes.insert(bytes.end(), facts.name.begin(), facts.name.end());
    const auto* words = reinterpret_cast<const uint8_t*>(facts.deciding_words.data());
    bytes.insert(bytes.end(), words, words + std::span(facts.deciding_words).size_bytes());
    bytes.insert(bytes.end(), cost.begin(), cost.end());
    bytes.insert(bytes.end(), object.begin(), object.end());
    header.digest = Sign(secret, header, std::span(bytes).subspan(sizeof(header)));
    std::memcpy(bytes.data(), &header, sizeof(header));
    return bytes;
}

Result<ParsedEntry> ParseEntry(const UserSecret& secret,
                               const Hash128& key,
                               std::span<const uint8_t> bytes) {
    Header header;
    if (bytes.size() < sizeof(header)) {
        return Refuse("it is shorter than its header");
    }
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (header.magic != kMagic) {
        return Refuse("it does not begin as a stored kernel does");
    }
    if (header.version != kCacheEntryVersion) {
        return Refuse("it is of another version");
    }
    if (Hash128{header.key_high, header.key_low} != key) {
        return Refuse("it was made for another request, machine or build");
    }
    std::span<const uint8_t> rest = bytes.subspan(sizeof(header));
    const uint64_t words_bytes = uint64_t{header.deciding_words} * sizeof(DescriptorPlace);
    const uint64_t before_cost = header.name_bytes + words_bytes;
    if (before_cost > rest.size() || header.cost_bytes > rest.size() - before_cost ||
        header.object_bytes != rest.size() - before_cost - header.cost_bytes) {
        return Refuse("its size is not what it says");
    }
    if (!SameDigest(header.digest, Sign(secret, header, rest))) {
        return Refuse("its digest proves that this user's compiler did not write it");
    }
    if (header.object_bytes == 0 && header.deciding_words == 0) {
        return Refuse("it has no code");
    }
    ParsedEntry entry;
    for (size_t i = 0; i < 3; ++i) {
        entry.facts.workgroup_size[i] = header.workgroup_size[i];
    }
    entry.facts.shared_bytes = header.shared_bytes;
    entry.facts.scratch_bytes = header.scratch_bytes;
    entry.facts.used_sets = header.used_sets;
    entry.facts.independent_workgroups = header.independent_workgroups != 0;
    entry.facts.name.assign(reinterpret_cast<const char*>(rest.data()), header.name_bytes);
    entry.facts.deciding_words.resize(header.deciding_words);
    if (words_bytes != 0) {
        std::memcpy(entry.facts.deciding_words.data(), rest.data() + header.name_bytes,
                    words_bytes);
    }
    if (header.cost_bytes != 0) {
        FORNAX_ASSIGN_OR_RETURN(KernelCost cost,
                                ParseCost(rest.subspan(before_cost, header.cost_bytes)));
        entry.facts.cost = std::make_shared<const KernelCost>(std::move(cost));
    }
    entry.object = rest.subspan(before_cost + header.cost_bytes);
    return entry;
}

}  // namespace fornax::kernel

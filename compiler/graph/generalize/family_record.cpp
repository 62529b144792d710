// The format, all numbers little-endian: magic, version (u32), family (16 bytes), the number of
// sizes, of lists and of bases (u32 each); the first list (i64 each); of each other list the number
// of differences from the first (u32) and these (u32 place, i64 size); of each basis the number of
// its members and the numbers of their lists (u32 each); lists that no basis names are samples; a
// checksum of all that (16 bytes).
#include "compiler/graph/generalize/family_record.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace fornax::graph {
namespace {

constexpr uint32_t kMagic = 0x5a535846;  // "FXSZ"
constexpr uint32_t kMostSizes = 1 << 22;
constexpr size_t kMostLists =
    FamilyRecord::kMostSamples + FamilyRecord::kMostMembers * FamilyRecord::kMostBases;

class Writer {
  public:
    template <typename T>
    void Write(T value) {
        const auto* from = reinterpret_cast<const std::byte*>(&value);
        bytes_.insert(bytes_.end(), from, from + sizeof(value));
    }
    std::vector<std::byte> Take() {
        const Hash128 digest = HashBytes(bytes_);
        Write(digest.high);
        Write(digest.low);
        return std::move(bytes_);
    }

  private:
    std::vector<std::byte> bytes_;
};

class Reader {
  public:
    explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    // 0 behind the end, where is_good() becomes false.
    template <typename T>
    T Read() {
        T value = 0;
        if (bytes_.size() < sizeof(value)) {
            is_good_ = false;
            return value;
        }
        std::memcpy(&value, bytes_.data(), sizeof(value));
        bytes_ = bytes_.subspan(sizeof(value));
        return value;
    }
    uint32_t Below(uint32_t limit) {
        const auto value = Read<uint32_t>();
        is_good_ = is_good_ && value < limit;
        return is_good_ ? value : 0;
    }
    void Expect(bool holds) { is_good_ = is_good_ && holds; }
    bool is_good() const { return is_good_; }
    size_t rest() const { return bytes_.size(); }

  private:
    std::span<const std::byte> bytes_;
    bool is_good_ = true;
};

template <typename T>
void AddLast(std::vector<T>& list, T item, size_t most) {
    std::erase(list, item);
    list.push_back(std::move(item));
    if (list.size() > most) {
        list.erase(list.begin());
    }
}

uint32_t NumberOf(std::vector<const FamilyRecord::Sizes*>& lists, const FamilyRecord::Sizes& one) {
    const auto found =
        std::ranges::find_if(lists, [&](const FamilyRecord::Sizes* list) { return *list == one; });
    if (found == lists.end()) {
        lists.push_back(&one);
        return static_cast<uint32_t>(lists.size() - 1);
    }
    return static_cast<uint32_t>(found - lists.begin());
}

std::optional<FamilyRecord> ReadRecord(Reader& reader, const Hash128& family) {
    reader.Expect(reader.Read<uint32_t>() == kMagic);
    reader.Expect(reader.Read<uint32_t>() == kFamilyRecordVersion);
    reader.Expect(reader.Read<uint64_t>() == family.high);
    reader.Expect(reader.Read<uint64_t>() == family.low);
    const uint32_t sizes = reader.Below(kMostSizes + 1);
    const uint32_t count = reader.Below(kMostLists + 1);
    const uint32_t bases = reader.Below(FamilyRecord::kMostBases + 1);
    reader.Expect(reader.rest() >= size_t{sizes} * sizeof(int64_t));
    std::vector<FamilyRecord::Sizes> lists;
    for (uint32_t i = 0; i < count && reader.is_good(); ++i) {
        FamilyRecord::Sizes& list = lists.emplace_back();
        if (i == 0) {
            for (uint32_t j = 0; j < sizes; ++j) {
                list.push_back(reader.Read<int64_t>());
            }
            continue;
        }
        list = lists[0];
        const uint32_t differences = reader.Below(sizes + 1);
        for (uint32_t j = 0; j < differences && reader.is_good(); ++j) {
            const uint32_t place = reader.Below(sizes);
            const auto size = reader.Read<int64_t>();
            if (reader.is_good()) {
                list[place] = size;
            }
        }
    }
    FamilyRecord record;
    std::vector<bool> is_sample(lists.size(), true);
    for (uint32_t i = 0; i < bases && reader.is_good(); ++i) {
        const uint32_t members = reader.Below(FamilyRecord::kMostMembers + 1);
        reader.Expect(members >= FamilyRecord::kLeastMembers);
        FamilyRecord::Basis& basis = record.bases.emplace_back();
        for (uint32_t j = 0; j < members && reader.is_good(); ++j) {
            const uint32_t list = reader.Below(count);
            if (reader.is_good()) {
                is_sample[list] = false;
                basis.push_back(lists[list]);
            }
        }
    }
    for (size_t i = 0; i < lists.size(); ++i) {
        if (is_sample[i]) {
            record.samples.push_back(std::move(lists[i]));
        }
    }
    reader.Expect(record.samples.size() <= FamilyRecord::kMostSamples);
    return reader.is_good() ? std::optional(std::move(record)) : std::nullopt;
}

}  // namespace

void FamilyRecord::AddSample(Sizes sizes) {
    AddLast(samples, std::move(sizes), kMostSamples);
}

void FamilyRecord::AddBasis(Basis basis) {
    std::erase_if(samples,
                  [&](const Sizes& one) { return std::ranges::find(basis, one) != basis.end(); });
    AddLast(bases, std::move(basis), kMostBases);
}

void FamilyRecord::Merge(const FamilyRecord& other) {
    for (const Sizes& sample : other.samples) {
        AddSample(sample);
    }
    for (const Basis& basis : other.bases) {
        AddBasis(basis);
    }
}

std::vector<std::byte> SerializeFamily(const Hash128& family, const FamilyRecord& record) {
    std::vector<const FamilyRecord::Sizes*> lists;
    std::vector<uint32_t> numbers;
    for (const FamilyRecord::Basis& basis : record.bases) {
        numbers.push_back(static_cast<uint32_t>(basis.size()));
        for (const FamilyRecord::Sizes& member : basis) {
            numbers.push_back(NumberOf(lists, member));
        }
    }
    for (const FamilyRecord::Sizes& sample : record.samples) {
        NumberOf(lists, sample);
    }
    const size_t sizes = lists.empty() ? 0 : lists[0]->size();
    Writer writer;
    writer.Write(kMagic);
    writer.Write(kFamilyRecordVersion);
    writer.Write(family.high);
    writer.Write(family.low);
    writer.Write(static_cast<uint32_t>(sizes));
    writer.Write(static_cast<uint32_t>(lists.size()));
    writer.Write(static_cast<uint32_t>(record.bases.size()));
    for (size_t i = 0; i < lists.size(); ++i) {
        const FamilyRecord::Sizes &first = *lists[0], &list = *lists[i];
        if (i == 0) {
            std::ranges::for_each(list, [&](int64_t size) { writer.Write(size); });
            continue;
        }
        uint32_t differences = 0;
        for (size_t j = 0; j < sizes; ++j) {
            differences += list[j] != first[j] ? 1 : 0;
        }
        writer.Write(differences);
        for (size_t j = 0; j < sizes; ++j) {
            if (list[j] != first[j]) {
                writer.Write(static_cast<uint32_t>(j));
                writer.Write(list[j]);
            }
        }
    }
    std::ranges::for_each(numbers, [&](uint32_t number) { writer.Write(number); });
    return writer.Take();
}

Result<FamilyRecord> ParseFamily(std::span<const std::byte> bytes, const Hash128& family) {
    constexpr size_t kDigestBytes = sizeof(uint64_t) * 2;
    std::optional<FamilyRecord> record;
    if (bytes.size() >= kDigestBytes) {
        const std::span<const std::byte> content = bytes.first(bytes.size() - kDigestBytes);
        Reader digest(bytes.last(kDigestBytes));
        const Hash128 expected = HashBytes(content);
        if (digest.Read<uint64_t>() == expected.high && digest.Read<uint64_t>() == expected.low) {
            Reader reader(content);
            record = ReadRecord(reader, family);
            if (reader.rest() != 0) {
                record.reset();
            }
        }
    }
    if (!record) {
        return Error{ErrorCode::kDataLoss,
                     fmt::format("{} bytes are no record of the sizes of the graphs {}.",
                                 bytes.size(), family.ToHex())};
    }
    return *std::move(record);
}

}  // namespace fornax::graph

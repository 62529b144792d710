// What is kept of a family of graphs from process to process: the sizes that were met, and which
// two or three of them a graph with symbols was made of. The graph itself follows from any member.
//
// Records come from files of others, so nothing in one is trusted: the worst that a wrong one does
// is to propose a generalization that covers no graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/result.h"

namespace fornax::graph {

struct FamilyRecord {
    using Sizes = std::vector<int64_t>;
    // Members that were generalized: two, or three if two sizes grow.
    using Basis = std::vector<Sizes>;
    // The sizes of graphs that have plans of their own, the last one last, and what was
    // generalized. All have as many sizes.
    std::vector<Sizes> samples;
    std::vector<Basis> bases;

    bool operator==(const FamilyRecord&) const = default;

    static constexpr size_t kMostSamples = 4, kMostBases = 8;
    static constexpr size_t kLeastMembers = 2, kMostMembers = 3;  // of a basis

    // Each drops the oldest one if there are too many. What is there already counts as new.
    void AddSample(Sizes sizes);
    void AddBasis(Basis basis);
    // Adds what another record of the family has.
    void Merge(const FamilyRecord& other);
};

inline constexpr uint32_t kFamilyRecordVersion = 2;

// Sizes are stored as differences from the first, with a checksum over all.
std::vector<std::byte> SerializeFamily(const Hash128& family, const FamilyRecord& record);

// kDataLoss with a sentence for bytes that SerializeFamily() did not make for this family.
Result<FamilyRecord> ParseFamily(std::span<const std::byte> bytes, const Hash128& family);

}  // namespace fornax::graph

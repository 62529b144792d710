// The stored form of a compiled kernel: what the disk cache and VkPipelineCache data hold.
//
//   magic, version, key, keyed digest, facts, name, deciding words, cost, object file
//
// The digest is keyed with a secret of this user and covers everything else, so that native code is
// only run if this user's compiler made it for this very key. A kernel with deciding words may have
// an entry without an object file: its code is made when it is known what is bound.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/keyed_digest.h"
#include "base/result.h"
#include "compiler/kernel/interface/binding_layout.h"
#include "compiler/kernel/interface/kernel_cost.h"

namespace fornax::kernel {

inline constexpr uint32_t kCacheEntryVersion = 8;

struct CacheEntryFacts {
    std::array<uint32_t, 3> workgroup_size = {1, 1, 1};
    uint32_t shared_bytes = 0;
    uint32_t scratch_bytes = 0;
    uint32_t used_sets = 0;
    bool independent_workgroups = false;
    std::string name;
    std::vector<DescriptorPlace> deciding_words;
    std::shared_ptr<const KernelCost> cost;  // of timed kernels, else null
};

std::vector<uint8_t> SerializeEntry(const UserSecret& secret,
                                    const Hash128& key,
                                    const CacheEntryFacts& facts,
                                    std::span<const uint8_t> object);

struct ParsedEntry {
    CacheEntryFacts facts;
    std::span<const uint8_t> object;  // into the bytes that were parsed; may be empty
};

// kDataLoss, with the reason, unless the bytes are a whole entry of this key and version whose
// digest is right.
Result<ParsedEntry> ParseEntry(const UserSecret& secret,
                               const Hash128& key,
                               std::span<const uint8_t> bytes);

}  // namespace fornax::kernel

// The records of dispatches.
//
// Programs dispatch the same kernels to the same buffers again and again, so records are kept by
// all that they follow from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "hal/executable.h"
#include "hal/kernel_abi.h"
#include "npu/replay/records.h"

namespace fornax::driver {

// Not thread-safe.
class DispatchRecords {
  public:
    // `with_lines`: records name the lines of the source that do most.
    explicit DispatchRecords(bool with_lines) : with_lines_(with_lines) {}

    // As hal::WorkObserver::Dispatch() has its arguments.
    npu::DispatchRecord Of(const hal::Executable& executable,
                           const hal::DispatchFrame& frame,
                           uint64_t workgroups,
                           std::span<const uint64_t> region_counts);

    size_t kept() const { return records_.size(); }

  private:
    // What a record follows from, but for its name.
    using Key = std::vector<uint64_t>;
    struct KeyHash {
        size_t operator()(const Key& key) const {
            return HashBytes(std::as_bytes(std::span(key))).low;
        }
    };
    struct Kept {
        // The key has the kernel's address, which another one may get.
        std::weak_ptr<const void> kernel;
        npu::DispatchRecord record;
    };

    const bool with_lines_;
    std::unordered_map<Key, Kept, KeyHash> records_;
    size_t kept_words_ = 0;  // of all keys
    Key key_;                // of the dispatch that is asked for
};

}  // namespace fornax::driver

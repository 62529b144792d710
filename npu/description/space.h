// A space of descriptions, for sweeps: a base and lists of values of keys, whose cross product it
// is. A TOML file like a description's, in which a list may stand wherever a value may:
//
//   base = "laptop-45"             a preset, or a file beside this one
//   [dram]
//   bandwidth_gbs = [68, 136.5]
//
// A key with one value changes the base. Implemented in read.cpp, beside descriptions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "npu/description/fields.h"

namespace fornax::npu {

inline constexpr uint64_t kMaxDescriptionsOfSpace = 1'000'000;

struct SpaceAxis {
    const Field* field = nullptr;
    std::vector<double> values;
    std::string name() const;  // "dram.bandwidth_gbs"
};

struct Space {
    std::string source;  // for messages
    Description base;
    std::vector<SpaceAxis> axes;  // in the order of the file's tables by name; none is empty

    uint64_t count() const;  // 1 to kMaxDescriptionsOfSpace
    // The value of an axis in a description; the last axis varies fastest.
    double ValueOf(size_t axis, uint64_t index) const;
    // Fails with a sentence where values contradict each other.
    Result<Description> At(uint64_t index) const;
};

// Relative paths of `base` are from `folder`.
Result<Space> ParseSpace(std::string_view text,
                         const std::string& source,
                         const std::string& folder);
Result<Space> LoadSpace(const std::string& path);

// The same space as a text without a base.
std::string TextOf(const Space& space);

}  // namespace fornax::npu

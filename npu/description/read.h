// Descriptions from TOML: presets, files, and the variable FORNAX_NPU.
//
// A file names every key of fields.h, or begins with `base = "PRESET"` and names those that differ.
// Errors are one sentence with the file, the key, its value and the limit.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "npu/description/description.h"

namespace fornax::npu {

// Larger files are refused.
inline constexpr size_t kMaxDescriptionBytes = 1 << 20;

struct Preset {
    std::string_view name;
    std::string_view text;  // TOML
};
std::span<const Preset> Presets();

// The description in a text; `source` names it in messages, and is its name if it gives none.
Result<Description> ParseDescription(std::string_view text, const std::string& source);

// The preset of the name, else the file of the path.
Result<Description> LoadDescription(const std::string& name_or_path);

// What FORNAX_NPU says; nullopt if it is not set.
Result<std::optional<Description>> DescriptionOfEnvironment();

// Whether values fit together that are right each for itself. The error is a clause with keys,
// values and the limit.
Status CheckDescription(const Description& description);

}  // namespace fornax::npu

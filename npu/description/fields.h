// The schema of a description: one line for each key of the file, with its unit, its limits and
// what it means. The reader, the hash, the printer and the test of the documentation all follow it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "npu/description/description.h"

namespace fornax::npu {

enum class FieldKind : uint8_t { kNumber, kInteger, kWord };

// Which values of a speed are those of a faster machine. Sizes, counts and shares are no speeds.
enum class Faster : uint8_t { kNeither, kMore, kLess };
inline constexpr std::array<std::string_view, 3> kFasterNames = {"", "more", "less"};

struct Field {
    std::string_view table;
    std::string_view key;
    std::string_view unit;  // "" of counts and words
    std::string_view meaning;
    FieldKind kind = FieldKind::kNumber;
    double least = 0;
    double most = 0;
    // What a field of words may be; its value is the index.
    std::span<const std::string_view> words = {};
    Faster faster = Faster::kNeither;
    bool is_optional = false;  // a file may lack it: it is the least value then
    double (*get)(const Description&) = nullptr;
    void (*set)(Description&, double) = nullptr;
};

// A field's value as a file has it.
std::string TextOf(const Field& field, double value);

// In the order of the tables in the file. Integers are at most 2^53, so that a double holds them.
std::span<const Field> Fields();

}  // namespace fornax::npu

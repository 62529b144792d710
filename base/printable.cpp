// Printable: a small UTF-8 decoder.
#include "base/printable.h"

#include <cstdint>

namespace fornax {
namespace {

// The bytes of the well-formed UTF-8 sequence that `text` begins with (RFC 3629), or 0.
size_t SequenceLength(std::string_view text) {
    const auto lead = static_cast<uint8_t>(text[0]);
    size_t length = 0;
    uint32_t code_point = 0, least = 0;
    if (lead < 0x80) {
        return 1;
    }
    if ((lead & 0xE0) == 0xC0) {
        length = 2, code_point = lead & 0x1F, least = 0x80;
    } else if ((lead & 0xF0) == 0xE0) {
        length = 3, code_point = lead & 0x0F, least = 0x800;
    } else if ((lead & 0xF8) == 0xF0) {
        length = 4, code_point = lead & 0x07, least = 0x10000;
    }
    if (length == 0 || text.size() < length) {
        return 0;
    }
    for (size_t i = 1; i < length; ++i) {
        const auto byte = static_cast<uint8_t>(text[i]);
        if ((byte & 0xC0) != 0x80) {
            return 0;
        }
        code_point = code_point << 6 | (byte & 0x3F);
    }
    const bool surrogate = code_point >= 0xD800 && code_point < 0xE000;
    const bool control = code_point < 0xA0;  // C1 controls begin escape sequences, too
    return code_point < least || code_point > 0x10FFFF || surrogate || control ? 0 : length;
}

}  // namespace

std::string Printable(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const size_t length = SequenceLength(text);
        const auto first = static_cast<uint8_t>(text[0]);
        const bool control = length == 1 && (first < 0x20 || first == 0x7F);
        if (length == 0 || control) {
            out += '?';
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out;
}

}  // namespace fornax

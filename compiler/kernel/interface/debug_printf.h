// What kernels leave for the host to print (NonSemantic.DebugPrintf), and the contract of the
// buffer that they leave it in. A kernel that is compiled with such a buffer's address
// (CompileOptions::printf_address) holds that address; nothing else of the compiler or the device
// knows of it.
//
// The buffer begins with a PrintfHeader; records follow. A record is a run of words:
//     its number of words; the bytes of its text; the text, padded to a word; the values
// The text is the format, a NUL, and a letter for each value: 'i' an integer of one word, 'l' one
// of two words, lower one first, 'f' a 32-bit float, 'd' a 64-bit one. Vectors are their
// components, booleans 0 or 1; narrower types are widened. So a record explains itself, also to a
// process that took the kernel out of a cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace fornax::kernel {

struct PrintfHeader {
    // Words that invocations have taken in the lower half, words that they have done with in the
    // upper one. Equal halves: every record that was begun is complete.
    uint64_t words = 0;
    uint32_t lost = 0;  // messages for which there was no room
    uint32_t unused = 0;
};
static_assert(sizeof(PrintfHeader) == 16);

// Whether a module may print, from its instructions before the first function. Kernels of others
// should not depend on a buffer: they could not be shared between processes.
inline bool MayPrint(std::span<const uint32_t> spirv) {
    constexpr uint32_t kExtInstImport = 11;
    constexpr uint32_t kFunction = 54;
    constexpr std::string_view kSet = "NonSemantic.DebugPrintf";
    for (size_t at = 5; at < spirv.size();) {
        const uint32_t op = spirv[at] & 0xffff;
        const size_t count = spirv[at] >> 16;
        if (op == kFunction || count == 0 || count > spirv.size() - at) {
            break;
        }
        const size_t name_bytes = count < 2 ? 0 : (count - 2) * 4;
        if (op == kExtInstImport && name_bytes > kSet.size() &&
            std::memcmp(&spirv[at + 2], kSet.data(), kSet.size()) == 0) {
            return true;
        }
        at += count;
    }
    return false;
}

}  // namespace fornax::kernel

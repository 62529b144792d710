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

namespace fornax::kernel {

struct PrintfHeader {
    // Words that invocations have taken in the lower half, words that they have done with in the
    // upper one. Equal halves: every record that was begun is complete.
    uint64_t words = 0;
    uint32_t lost = 0;  // messages for which there was no room
    uint32_t unused = 0;
};
static_assert(sizeof(PrintfHeader) == 16);

}  // namespace fornax::kernel

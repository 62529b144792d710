// The reader of fornax_kernel_compiler_test, which takes kernel IR text in place of SPIR-V
// (kernel_compiler_test.cpp).
#pragma once

#include <cstdint>

namespace fornax::kernel {

// A kernel is refused if it is known that a descriptor has this word.
inline constexpr uint32_t kUnreadableWord = 0xdead'beef;

// How often the reader was called.
int SpirvReads();

}  // namespace fornax::kernel

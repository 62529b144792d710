// Changes to SPIR-V modules that leave most of them well-formed, so that they get far into the
// compiler.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/interpret/random_kernel.h"

namespace fornax::kernel::fuzz {

// A copy with a few words, instructions or ids changed. Any words may be given.
std::vector<uint32_t> Mutate(const std::vector<uint32_t>& module, Random& random);

}  // namespace fornax::kernel::fuzz

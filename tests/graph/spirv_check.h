// What SPIRV-Tools' validator says against the SPIR-V of kernels.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace fornax::test {

// What it says against the module, for Vulkan 1.2; empty if nothing.
std::string Validate(std::span<const uint32_t> words);

}  // namespace fornax::test

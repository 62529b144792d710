// Kernels that a person wrote, as SPIR-V, by name: shaders/NAME.comp, embedded when Fornax is
// built.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fornax::shaders {

struct EmbeddedKernel {
    std::string_view name;
    std::span<const uint32_t> spirv;
};

// All kernels, sorted by name.
std::span<const EmbeddedKernel> EmbeddedKernels();

}  // namespace fornax::shaders

// Derivatives and operations of quads in compute shaders as GLSL, with what they must give: for
// tests of the reader (in the interpreter) and of the whole driver (through the Vulkan loader).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fornax::kernel {

// One dispatch of a shader that takes all derivatives.
struct DerivativeRun {
    static constexpr uint32_t kWorkgroups = 3;  // along x

    bool quads = true;  // or linear groups
    std::array<uint32_t, 3> size = {8, 4, 1};
    // Only two quads of three run the operations.
    bool some_quads = false;
    // The extension's first name, GL_NV_compute_shader_derivatives.
    bool vendor_name = false;

    // Binding 0 is the output, binding 1 the input.
    std::string Shader() const;
    std::vector<uint32_t> Input() const;
    std::vector<uint32_t> FreshOutput() const;
    // What is wrong in the output; empty if nothing is.
    std::string FirstWrong(std::span<const uint32_t> output) const;

    // Local invocation indices of the quad that invocation `index` is in, in the quad's order.
    std::array<uint32_t, 4> QuadOf(uint32_t index) const;

  private:
    uint32_t Invocations() const { return size[0] * size[1] * size[2]; }
    bool Runs(uint32_t index) const;
};

// Runs of both kinds: workgroups smaller than a subgroup, and of one, two and three dimensions.
std::vector<DerivativeRun> DerivativeRuns();

}  // namespace fornax::kernel

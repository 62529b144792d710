// What texels of each format mean, written down a second time and plainly: the reference that tests
// of images compare with.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <vulkan/vulkan_core.h>

namespace fornax::test {

struct TexelReference {
    VkFormat format;
    enum class Kind {
        kUnorm,
        kSnorm,
        kUint,
        kSint,
        kFloat,
        kUfloat,
        kSrgb,
        kSharedExponent,
        kUscaled,
        kSscaled
    } kind;
    // Bits and place of red, green, blue and alpha; 0 bits for none.
    std::array<uint8_t, 4> bits;
    std::array<uint8_t, 4> first;
    bool depth = false;
    uint8_t unused_bits = 0;
    bool stencil = false;  // and nothing else

    uint32_t bytes() const;
    // Texel buffers only.
    bool scaled() const { return kind == Kind::kUscaled || kind == Kind::kSscaled; }
    bool integer() const { return kind == Kind::kUint || kind == Kind::kSint; }
    // The four components as shaders see them: floats' or integers' bits.
    std::array<uint32_t, 4> Decode(const uint8_t* texel) const;
    // How far a float component may be from Decode's.
    double Tolerance() const;
};

std::span<const TexelReference> AllTexelReferences();
const TexelReference* FindTexelReference(VkFormat format);

}  // namespace fornax::test

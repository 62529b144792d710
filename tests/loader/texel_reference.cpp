// Texels, bit by bit.
#include "tests/loader/texel_reference.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace fornax::test {
namespace {

using Kind = TexelReference::Kind;

// clang-format off
constexpr TexelReference kReferences[] = {
    {VK_FORMAT_R4G4_UNORM_PACK8, Kind::kUnorm, {4, 4, 0, 0}, {4, 0}},
    {VK_FORMAT_R4G4B4A4_UNORM_PACK16, Kind::kUnorm, {4, 4, 4, 4}, {12, 8, 4, 0}},
    {VK_FORMAT_B4G4R4A4_UNORM_PACK16, Kind::kUnorm, {4, 4, 4, 4}, {4, 8, 12, 0}},
    {VK_FORMAT_R5G6B5_UNORM_PACK16, Kind::kUnorm, {5, 6, 5, 0}, {11, 5, 0, 0}},
    {VK_FORMAT_B5G6R5_UNORM_PACK16, Kind::kUnorm, {5, 6, 5, 0}, {0, 5, 11, 0}},
    {VK_FORMAT_R5G5B5A1_UNORM_PACK16, Kind::kUnorm, {5, 5, 5, 1}, {11, 6, 1, 0}},
    {VK_FORMAT_B5G5R5A1_UNORM_PACK16, Kind::kUnorm, {5, 5, 5, 1}, {1, 6, 11, 0}},
    {VK_FORMAT_A1R5G5B5_UNORM_PACK16, Kind::kUnorm, {5, 5, 5, 1}, {10, 5, 0, 15}},
    {VK_FORMAT_R8_UNORM, Kind::kUnorm, {8, 0, 0, 0}, {0}},
    {VK_FORMAT_R8_SNORM, Kind::kSnorm, {8, 0, 0, 0}, {0}},
    {VK_FORMAT_R8_USCALED, Kind::kUscaled, {8, 0, 0, 0}, {0}},
    {VK_FORMAT_R8_SSCALED, Kind::kSscaled, {8, 0, 0, 0}, {0}},
    {VK_FORMAT_R8_UINT, Kind::kUint, {8, 0, 0, 0}, {0}},
    {VK_FORMAT_R8_SINT, Kind::kSint, {8, 0, 0, 0}, {0}},
    {VK_FORMAT_R8_SRGB, Kind::kSrgb, {8, 0, 0, 0}, {0}},
    {VK_FORMAT_R8G8_UNORM, Kind::kUnorm, {8, 8, 0, 0}, {0, 8}},
    {VK_FORMAT_R8G8_SNORM, Kind::kSnorm, {8, 8, 0, 0}, {0, 8}},
    {VK_FORMAT_R8G8_USCALED, Kind::kUscaled, {8, 8, 0, 0}, {0, 8}},
    {VK_FORMAT_R8G8_SSCALED, Kind::kSscaled, {8, 8, 0, 0}, {0, 8}},
    {VK_FORMAT_R8G8_UINT, Kind::kUint, {8, 8, 0, 0}, {0, 8}},
    {VK_FORMAT_R8G8_SINT, Kind::kSint, {8, 8, 0, 0}, {0, 8}},
    {VK_FORMAT_R8G8_SRGB, Kind::kSrgb, {8, 8, 0, 0}, {0, 8}},
    {VK_FORMAT_R8G8B8_UNORM, Kind::kUnorm, {8, 8, 8, 0}, {0, 8, 16}},
    {VK_FORMAT_R8G8B8_SNORM, Kind::kSnorm, {8, 8, 8, 0}, {0, 8, 16}},
    {VK_FORMAT_R8G8B8_USCALED, Kind::kUscaled, {8, 8, 8, 0}, {0, 8, 16}},
    {VK_FORMAT_R8G8B8_SSCALED, Kind::kSscaled, {8, 8, 8, 0}, {0, 8, 16}},
    {VK_FORMAT_R8G8B8_UINT, Kind::kUint, {8, 8, 8, 0}, {0, 8, 16}},
    {VK_FORMAT_R8G8B8_SINT, Kind::kSint, {8, 8, 8, 0}, {0, 8, 16}},
    {VK_FORMAT_R8G8B8_SRGB, Kind::kSrgb, {8, 8, 8, 0}, {0, 8, 16}},
    {VK_FORMAT_B8G8R8_UNORM, Kind::kUnorm, {8, 8, 8, 0}, {16, 8, 0}},
    {VK_FORMAT_B8G8R8_SNORM, Kind::kSnorm, {8, 8, 8, 0}, {16, 8, 0}},
    {VK_FORMAT_B8G8R8_USCALED, Kind::kUscaled, {8, 8, 8, 0}, {16, 8, 0}},
    {VK_FORMAT_B8G8R8_SSCALED, Kind::kSscaled, {8, 8, 8, 0}, {16, 8, 0}},
    {VK_FORMAT_B8G8R8_UINT, Kind::kUint, {8, 8, 8, 0}, {16, 8, 0}},
    {VK_FORMAT_B8G8R8_SINT, Kind::kSint, {8, 8, 8, 0}, {16, 8, 0}},
    {VK_FORMAT_B8G8R8_SRGB, Kind::kSrgb, {8, 8, 8, 0}, {16, 8, 0}},
    {VK_FORMAT_R8G8B8A8_UNORM, Kind::kUnorm, {8, 8, 8, 8}, {0, 8, 16, 24}},
    {VK_FORMAT_R8G8B8A8_SNORM, Kind::kSnorm, {8, 8, 8, 8}, {0, 8, 16, 24}},
    {VK_FORMAT_R8G8B8A8_USCALED, Kind::kUscaled, {8, 8, 8, 8}, {0, 8, 16, 24}},
    {VK_FORMAT_R8G8B8A8_SSCALED, Kind::kSscaled, {8, 8, 8, 8}, {0, 8, 16, 24}},
    {VK_FORMAT_R8G8B8A8_UINT, Kind::kUint, {8, 8, 8, 8}, {0, 8, 16, 24}},
    {VK_FORMAT_R8G8B8A8_SINT, Kind::kSint, {8, 8, 8, 8}, {0, 8, 16, 24}},
    {VK_FORMAT_R8G8B8A8_SRGB, Kind::kSrgb, {8, 8, 8, 8}, {0, 8, 16, 24}},
    {VK_FORMAT_B8G8R8A8_UNORM, Kind::kUnorm, {8, 8, 8, 8}, {16, 8, 0, 24}},
    {VK_FORMAT_B8G8R8A8_SNORM, Kind::kSnorm, {8, 8, 8, 8}, {16, 8, 0, 24}},
    {VK_FORMAT_B8G8R8A8_USCALED, Kind::kUscaled, {8, 8, 8, 8}, {16, 8, 0, 24}},
    {VK_FORMAT_B8G8R8A8_SSCALED, Kind::kSscaled, {8, 8, 8, 8}, {16, 8, 0, 24}},
    {VK_FORMAT_B8G8R8A8_UINT, Kind::kUint, {8, 8, 8, 8}, {16, 8, 0, 24}},
    {VK_FORMAT_B8G8R8A8_SINT, Kind::kSint, {8, 8, 8, 8}, {16, 8, 0, 24}},
    {VK_FORMAT_B8G8R8A8_SRGB, Kind::kSrgb, {8, 8, 8, 8}, {16, 8, 0, 24}},
    {VK_FORMAT_A8B8G8R8_UNORM_PACK32, Kind::kUnorm, {8, 8, 8, 8}, {0, 8, 16, 24}},
    {VK_FORMAT_A8B8G8R8_SNORM_PACK32, Kind::kSnorm, {8, 8, 8, 8}, {0, 8, 16, 24}},
    {VK_FORMAT_A8B8G8R8_USCALED_PACK32, Kind::kUscaled, {8, 8, 8, 8}, {0, 8, 16, 24}},
    {VK_FORMAT_A8B8G8R8_SSCALED_PACK32, Kind::kSscaled, {8, 8, 8, 8}, {0, 8, 16, 24}},
    {VK_FORMAT_A8B8G8R8_UINT_PACK32, Kind::kUint, {8, 8, 8, 8}, {0, 8, 16, 24}},
    {VK_FORMAT_A8B8G8R8_SINT_PACK32, Kind::kSint, {8, 8, 8, 8}, {0, 8, 16, 24}},
    {VK_FORMAT_A8B8G8R8_SRGB_PACK32, Kind::kSrgb, {8, 8, 8, 8}, {0, 8, 16, 24}},
    {VK_FORMAT_A2R10G10B10_UNORM_PACK32, Kind::kUnorm, {10, 10, 10, 2}, {20, 10, 0, 30}},
    {VK_FORMAT_A2R10G10B10_SNORM_PACK32, Kind::kSnorm, {10, 10, 10, 2}, {20, 10, 0, 30}},
    {VK_FORMAT_A2R10G10B10_USCALED_PACK32, Kind::kUscaled, {10, 10, 10, 2}, {20, 10, 0, 30}},
    {VK_FORMAT_A2R10G10B10_SSCALED_PACK32, Kind::kSscaled, {10, 10, 10, 2}, {20, 10, 0, 30}},
    {VK_FORMAT_A2R10G10B10_UINT_PACK32, Kind::kUint, {10, 10, 10, 2}, {20, 10, 0, 30}},
    {VK_FORMAT_A2R10G10B10_SINT_PACK32, Kind::kSint, {10, 10, 10, 2}, {20, 10, 0, 30}},
    {VK_FORMAT_A2B10G10R10_UNORM_PACK32, Kind::kUnorm, {10, 10, 10, 2}, {0, 10, 20, 30}},
    {VK_FORMAT_A2B10G10R10_SNORM_PACK32, Kind::kSnorm, {10, 10, 10, 2}, {0, 10, 20, 30}},
    {VK_FORMAT_A2B10G10R10_USCALED_PACK32, Kind::kUscaled, {10, 10, 10, 2}, {0, 10, 20, 30}},
    {VK_FORMAT_A2B10G10R10_SSCALED_PACK32, Kind::kSscaled, {10, 10, 10, 2}, {0, 10, 20, 30}},
    {VK_FORMAT_A2B10G10R10_UINT_PACK32, Kind::kUint, {10, 10, 10, 2}, {0, 10, 20, 30}},
    {VK_FORMAT_A2B10G10R10_SINT_PACK32, Kind::kSint, {10, 10, 10, 2}, {0, 10, 20, 30}},
    {VK_FORMAT_R16_UNORM, Kind::kUnorm, {16, 0, 0, 0}, {0}},
    {VK_FORMAT_R16_SNORM, Kind::kSnorm, {16, 0, 0, 0}, {0}},
    {VK_FORMAT_R16_USCALED, Kind::kUscaled, {16, 0, 0, 0}, {0}},
    {VK_FORMAT_R16_SSCALED, Kind::kSscaled, {16, 0, 0, 0}, {0}},
    {VK_FORMAT_R16_UINT, Kind::kUint, {16, 0, 0, 0}, {0}},
    {VK_FORMAT_R16_SINT, Kind::kSint, {16, 0, 0, 0}, {0}},
    {VK_FORMAT_R16_SFLOAT, Kind::kFloat, {16, 0, 0, 0}, {0}},
    {VK_FORMAT_R16G16_UNORM, Kind::kUnorm, {16, 16, 0, 0}, {0, 16}},
    {VK_FORMAT_R16G16_SNORM, Kind::kSnorm, {16, 16, 0, 0}, {0, 16}},
    {VK_FORMAT_R16G16_USCALED, Kind::kUscaled, {16, 16, 0, 0}, {0, 16}},
    {VK_FORMAT_R16G16_SSCALED, Kind::kSscaled, {16, 16, 0, 0}, {0, 16}},
    {VK_FORMAT_R16G16_UINT, Kind::kUint, {16, 16, 0, 0}, {0, 16}},
    {VK_FORMAT_R16G16_SINT, Kind::kSint, {16, 16, 0, 0}, {0, 16}},
    {VK_FORMAT_R16G16_SFLOAT, Kind::kFloat, {16, 16, 0, 0}, {0, 16}},
    {VK_FORMAT_R16G16B16_UNORM, Kind::kUnorm, {16, 16, 16, 0}, {0, 16, 32}},
    {VK_FORMAT_R16G16B16_SNORM, Kind::kSnorm, {16, 16, 16, 0}, {0, 16, 32}},
    {VK_FORMAT_R16G16B16_USCALED, Kind::kUscaled, {16, 16, 16, 0}, {0, 16, 32}},
    {VK_FORMAT_R16G16B16_SSCALED, Kind::kSscaled, {16, 16, 16, 0}, {0, 16, 32}},
    {VK_FORMAT_R16G16B16_UINT, Kind::kUint, {16, 16, 16, 0}, {0, 16, 32}},
    {VK_FORMAT_R16G16B16_SINT, Kind::kSint, {16, 16, 16, 0}, {0, 16, 32}},
    {VK_FORMAT_R16G16B16_SFLOAT, Kind::kFloat, {16, 16, 16, 0}, {0, 16, 32}},
    {VK_FORMAT_R16G16B16A16_UNORM, Kind::kUnorm, {16, 16, 16, 16}, {0, 16, 32, 48}},
    {VK_FORMAT_R16G16B16A16_SNORM, Kind::kSnorm, {16, 16, 16, 16}, {0, 16, 32, 48}},
    {VK_FORMAT_R16G16B16A16_USCALED, Kind::kUscaled, {16, 16, 16, 16}, {0, 16, 32, 48}},
    {VK_FORMAT_R16G16B16A16_SSCALED, Kind::kSscaled, {16, 16, 16, 16}, {0, 16, 32, 48}},
    {VK_FORMAT_R16G16B16A16_UINT, Kind::kUint, {16, 16, 16, 16}, {0, 16, 32, 48}},
    {VK_FORMAT_R16G16B16A16_SINT, Kind::kSint, {16, 16, 16, 16}, {0, 16, 32, 48}},
    {VK_FORMAT_R16G16B16A16_SFLOAT, Kind::kFloat, {16, 16, 16, 16}, {0, 16, 32, 48}},
    {VK_FORMAT_R32_UINT, Kind::kUint, {32, 0, 0, 0}, {0}},
    {VK_FORMAT_R32_SINT, Kind::kSint, {32, 0, 0, 0}, {0}},
    {VK_FORMAT_R32_SFLOAT, Kind::kFloat, {32, 0, 0, 0}, {0}},
    {VK_FORMAT_R32G32_UINT, Kind::kUint, {32, 32, 0, 0}, {0, 32}},
    {VK_FORMAT_R32G32_SINT, Kind::kSint, {32, 32, 0, 0}, {0, 32}},
    {VK_FORMAT_R32G32_SFLOAT, Kind::kFloat, {32, 32, 0, 0}, {0, 32}},
    {VK_FORMAT_R32G32B32_UINT, Kind::kUint, {32, 32, 32, 0}, {0, 32, 64}},
    {VK_FORMAT_R32G32B32_SINT, Kind::kSint, {32, 32, 32, 0}, {0, 32, 64}},
    {VK_FORMAT_R32G32B32_SFLOAT, Kind::kFloat, {32, 32, 32, 0}, {0, 32, 64}},
    {VK_FORMAT_R32G32B32A32_UINT, Kind::kUint, {32, 32, 32, 32}, {0, 32, 64, 96}},
    {VK_FORMAT_R32G32B32A32_SINT, Kind::kSint, {32, 32, 32, 32}, {0, 32, 64, 96}},
    {VK_FORMAT_R32G32B32A32_SFLOAT, Kind::kFloat, {32, 32, 32, 32}, {0, 32, 64, 96}},
    {VK_FORMAT_B10G11R11_UFLOAT_PACK32, Kind::kUfloat, {11, 11, 10, 0}, {0, 11, 22, 0}},
    {VK_FORMAT_E5B9G9R9_UFLOAT_PACK32, Kind::kSharedExponent, {9, 9, 9, 0}, {0, 9, 18, 0}},
    {VK_FORMAT_D16_UNORM, Kind::kUnorm, {16, 0, 0, 0}, {0}, true},
    {VK_FORMAT_X8_D24_UNORM_PACK32, Kind::kUnorm, {24, 0, 0, 0}, {0}, true, 8},
    {VK_FORMAT_D32_SFLOAT, Kind::kFloat, {32, 0, 0, 0}, {0}, true},
    {VK_FORMAT_S8_UINT, Kind::kUint, {8, 0, 0, 0}, {0}, false, 0, true},
    {VK_FORMAT_A4R4G4B4_UNORM_PACK16, Kind::kUnorm, {4, 4, 4, 4}, {8, 4, 0, 12}},
    {VK_FORMAT_A4B4G4R4_UNORM_PACK16, Kind::kUnorm, {4, 4, 4, 4}, {0, 4, 8, 12}},
    {VK_FORMAT_A1B5G5R5_UNORM_PACK16, Kind::kUnorm, {5, 5, 5, 1}, {0, 5, 10, 15}},
    {VK_FORMAT_A8_UNORM, Kind::kUnorm, {0, 0, 0, 8}, {0, 0, 0, 0}},
};
// clang-format on

// A float of five exponent bits and `mantissa_bits`.
double SmallFloat(uint32_t bits, int mantissa_bits) {
    const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
    const auto exponent = static_cast<int>(bits >> mantissa_bits & 31);
    const double fraction = std::ldexp(mantissa, -mantissa_bits);
    if (exponent == 31) {
        return mantissa ? NAN : INFINITY;
    }
    return exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
}

}  // namespace

std::span<const TexelReference> AllTexelReferences() {
    return kReferences;
}

const TexelReference* FindTexelReference(VkFormat format) {
    for (const TexelReference& reference : kReferences) {
        if (reference.format == format) {
            return &reference;
        }
    }
    return nullptr;
}

uint32_t TexelReference::bytes() const {
    uint32_t all = kind == Kind::kSharedExponent ? 5u : unused_bits;
    for (uint8_t count : bits) {
        all += count;
    }
    return (all + 7) / 8;
}

double TexelReference::Tolerance() const {
    switch (kind) {
        case Kind::kUnorm:
        case Kind::kSnorm:
            return 1e-7;
        case Kind::kSrgb:
            return 1e-6;
        default:
            return 0;
    }
}

std::array<uint32_t, 4> TexelReference::Decode(const uint8_t* texel) const {
    std::array<uint32_t, 4> out{};
    const auto from_double = [](double value) {
        return std::bit_cast<uint32_t>(static_cast<float>(value));
    };
    uint32_t word = 0;
    if (kind == Kind::kSharedExponent) {
        std::memcpy(&word, texel, 4);
    }
    for (size_t i = 0; i < 4; ++i) {
        if (bits[i] == 0) {
            out[i] = i < 3 ? 0 : integer() ? 1 : from_double(1);
            continue;
        }
        uint32_t raw = 0;
        for (uint32_t bit = 0; bit < bits[i]; ++bit) {
            const uint32_t at = first[i] + bit;
            raw |= static_cast<uint32_t>(texel[at / 8] >> at % 8 & 1) << bit;
        }
        const double most = std::exp2(bits[i]) - 1;
        const auto as_signed = static_cast<int32_t>(raw << (32 - bits[i])) >> (32 - bits[i]);
        switch (kind) {
            case Kind::kUint:
                out[i] = raw;
                break;
            case Kind::kSint:
                out[i] = static_cast<uint32_t>(as_signed);
                break;
            case Kind::kUscaled:
                out[i] = from_double(raw);
                break;
            case Kind::kSscaled:
                out[i] = from_double(as_signed);
                break;
            case Kind::kUnorm:
                out[i] = from_double(raw / most);
                break;
            case Kind::kSnorm:
                out[i] = from_double(std::max(-1.0, as_signed / (std::exp2(bits[i] - 1) - 1)));
                break;
            case Kind::kSrgb: {
                const double c = raw / most;
                out[i] = from_double(i == 3         ? c
                                     : c <= 0.04045 ? c / 12.92
                                                    : std::pow((c + 0.055) / 1.055, 2.4));
                break;
            }
            case Kind::kFloat:
                out[i] = bits[i] == 32
                             ? raw
                             : from_double((raw >> 15 ? -1.0 : 1.0) * SmallFloat(raw & 0x7fff, 10));
                break;
            case Kind::kUfloat:
                out[i] = from_double(SmallFloat(raw, bits[i] - 5));
                break;
            case Kind::kSharedExponent:
                out[i] = from_double(std::ldexp(raw, static_cast<int>(word >> 27) - 15 - 9));
                break;
        }
    }
    return out;
}

}  // namespace fornax::test

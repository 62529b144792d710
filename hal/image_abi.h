// The binary contract for images, texel buffers and samplers: how their descriptors lie in a
// descriptor set's memory, beside hal::BufferDescriptor. As hal/kernel_abi.h, of which this is a
// part: what changes here changes kKernelAbiVersion.
//
// An image is plain memory. The texel (x, y, z) of a level lies at
//     memory.address + level offset + x * texel bytes + y * row pitch + z * slice pitch,
// where z counts depth slices or array layers; no level, and no layer of all levels, is further
// than 4 GiB away. Each level but the base has the row pitch RowPitch() and, if it is one of depth
// slices, the slice pitch RowPitch() * height; layers are as far apart in every level as in the
// base. Sample s of a multisampled image is the texel (x * samples + s, y, z). Formats of
// compressed blocks have blocks where others have texels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hal/kernel_abi.h"

namespace fornax::hal {

// How a texel's bits are cut into components; the first component is the lowest bits.
enum class TexelLayout : uint8_t {
    k8,
    k8x2,
    k8x4,
    k16,
    k16x2,
    k16x4,
    k32,
    k32x2,
    k32x4,
    k10_10_10_2,
    k11_11_10,  // unsigned floats with five exponent bits, as in the upper bits of a half
    k9_9_9_5,   // three mantissas and the exponent that they share
    k5_6_5,
    k5_5_5_1,
    k4x4,
    k1_5_5_5,
    k24,  // and a byte without meaning above
    k4x2,
    kInt10x3_2,  // as k10_10_10_2, but all components are signed
    k8x3,
    k16x3,
    k32x3,
    // Blocks of four by four texels, which are only sampled.
    kEtc2,        // eight bytes
    kEtc2Alpha1,  // eight bytes, with texels that are transparent
    kEtc2Alpha8,  // a block of alpha, then one of colors
    kEac,         // one component of eleven bits in eight bytes
    kEacX2,
    kBc1,  // eight bytes, as kBc4; the others have sixteen
    kBc2,
    kBc3,
    kBc4,
    kBc5,
    kBc6,
    kBc6Signed,
    kBc7,
};
// The first ones are those of storage images and storage texel buffers.
inline constexpr uint32_t kStorageLayoutCount = static_cast<uint32_t>(TexelLayout::k9_9_9_5);
inline constexpr uint32_t kTexelLayoutCount = static_cast<uint32_t>(TexelLayout::kEtc2);
// Blocks have 1 << kBlockLog2 texels each way.
inline constexpr uint32_t kBlockLog2 = 2;
constexpr uint32_t BlockLog2(TexelLayout layout) {
    return layout >= TexelLayout::kEtc2 ? kBlockLog2 : 0;
}

// What the bits of a component mean.
enum class TexelClass : uint8_t {
    kUint,
    kSint,
    kUnorm,
    kSnorm,
    kSrgb,
    kHalf,
    kFloat,
    kSharedExponent,
    kUscaled,  // integers that are floats to kernels
    kSscaled
};

// A format as kernels see it. Components that the layout does not have, and their order where red
// is not the first, are the business of the descriptor's swizzle.
struct TexelFormat {
    TexelLayout layout = TexelLayout::k32;
    TexelClass texel_class = TexelClass::kFloat;
    // What kernels that learn the format at run time would otherwise compute.
    uint8_t bytes = 4;       // of a texel, or of a block
    uint8_t sign_shift = 0;  // 32 less the bits of a component, of signed classes

    friend bool operator==(const TexelFormat&, const TexelFormat&) = default;
};
// What a kernel reads from the four bytes of a TexelFormat.
inline constexpr uint32_t kTexelLayoutShift = 0;
inline constexpr uint32_t kTexelClassShift = 8;
inline constexpr uint32_t kTexelBytesShift = 16;
inline constexpr uint32_t kTexelSignShiftShift = 24;

// The bits of each component of a layout; 0 for none.
constexpr std::array<uint8_t, 4> ComponentBits(TexelLayout layout) {
    switch (layout) {
        case TexelLayout::k8:
            return {8, 0, 0, 0};
        case TexelLayout::k8x2:
            return {8, 8, 0, 0};
        case TexelLayout::k8x4:
            return {8, 8, 8, 8};
        case TexelLayout::k16:
            return {16, 0, 0, 0};
        case TexelLayout::k16x2:
            return {16, 16, 0, 0};
        case TexelLayout::k16x4:
            return {16, 16, 16, 16};
        case TexelLayout::k32:
            return {32, 0, 0, 0};
        case TexelLayout::k32x2:
            return {32, 32, 0, 0};
        case TexelLayout::k32x4:
            return {32, 32, 32, 32};
        case TexelLayout::k10_10_10_2:
        case TexelLayout::kInt10x3_2:
            return {10, 10, 10, 2};
        case TexelLayout::k11_11_10:
            return {11, 11, 10, 0};
        case TexelLayout::k9_9_9_5:
            return {9, 9, 9, 5};
        case TexelLayout::k5_6_5:
            return {5, 6, 5, 0};
        case TexelLayout::k5_5_5_1:
            return {5, 5, 5, 1};
        case TexelLayout::k4x4:
            return {4, 4, 4, 4};
        case TexelLayout::k1_5_5_5:
            return {1, 5, 5, 5};
        case TexelLayout::k4x2:
            return {4, 4, 0, 0};
        case TexelLayout::k24:
            return {24, 0, 0, 0};
        case TexelLayout::k8x3:
            return {8, 8, 8, 0};
        case TexelLayout::k16x3:
            return {16, 16, 16, 0};
        case TexelLayout::k32x3:
            return {32, 32, 32, 0};
        // The widths are those of decoded texels.
        case TexelLayout::kEtc2:
        case TexelLayout::kEtc2Alpha1:
        case TexelLayout::kEtc2Alpha8:
            return {8, 8, 8, 8};
        case TexelLayout::kEac:
            return {11, 0, 0, 0};
        case TexelLayout::kEacX2:
            return {11, 11, 0, 0};
        case TexelLayout::kBc1:
        case TexelLayout::kBc2:
        case TexelLayout::kBc3:
        case TexelLayout::kBc7:
            return {8, 8, 8, 8};
        // Thirty-fifths of eight bits (ComponentScale).
        case TexelLayout::kBc4:
            return {14, 0, 0, 0};
        case TexelLayout::kBc5:
            return {14, 14, 0, 0};
        case TexelLayout::kBc6:
        case TexelLayout::kBc6Signed:
            return {16, 16, 16, 0};
    }
    return {};
}

constexpr TexelFormat MakeTexelFormat(TexelLayout layout, TexelClass texel_class) {
    uint32_t bits = 0;
    for (uint8_t component : ComponentBits(layout)) {
        bits += component;
    }
    TexelFormat format{.layout = layout,
                       .texel_class = texel_class,
                       .bytes = static_cast<uint8_t>(layout == TexelLayout::k24 ? 4 : bits / 8),
                       .sign_shift = 0};
    if (BlockLog2(layout) != 0) {
        const bool one = layout == TexelLayout::kEtc2 || layout == TexelLayout::kEtc2Alpha1 ||
                         layout == TexelLayout::kEac || layout == TexelLayout::kBc1 ||
                         layout == TexelLayout::kBc4;
        format.bytes = one ? 8 : 16;
    }
    if (texel_class == TexelClass::kSint || texel_class == TexelClass::kSnorm ||
        texel_class == TexelClass::kSscaled) {
        format.sign_shift = static_cast<uint8_t>(32 - ComponentBits(layout)[0]);
    }
    return format;
}

// The factor of a normalised component of `bits` bits; 0 for none.
constexpr float NormalizedScale(TexelClass texel_class, uint32_t bits) {
    const uint32_t whole_bits = bits - (texel_class == TexelClass::kSnorm ? 1 : 0);
    return bits == 0
               ? 0.0f
               : static_cast<float>(1.0 / static_cast<double>((uint64_t{1} << whole_bits) - 1));
}

// That of a component of a texel.
constexpr float ComponentScale(const TexelFormat& format, size_t component) {
    const uint32_t bits = ComponentBits(format.layout)[component];
    // Interpolated in sevenths and in fifths, they stay whole.
    if ((format.layout == TexelLayout::kBc4 || format.layout == TexelLayout::kBc5) && bits != 0) {
        return 1.0f / (format.texel_class == TexelClass::kSnorm ? 35 * 127 : 35 * 255);
    }
    return NormalizedScale(format.texel_class, bits);
}

// A component of a swizzle: four bits each, red's lowest.
enum class Swizzle : uint8_t { kRed, kGreen, kBlue, kAlpha, kZero, kOne };
inline constexpr uint32_t kSwizzleBits = 4;
inline constexpr uint32_t kIdentitySwizzle = 0x3210;
// Above a sampled image's swizzle stands which of red, green, blue and alpha each component of its
// texels is, for borders.
inline constexpr uint32_t kSwizzleOrderShift = 16;

inline constexpr uint32_t kMaxImageLevels = 16;
inline constexpr uint32_t kRowAlignment = 16;

inline constexpr uint64_t RowPitch(uint64_t width, uint32_t texel_bytes) {
    return (width * texel_bytes + kRowAlignment - 1) & ~uint64_t{kRowAlignment - 1};
}

// A storage image, or a texel buffer of either kind (whose width is its number of texels). The null
// descriptor is all zeros: every texel is outside of it.
struct ImageDescriptor {
    BufferDescriptor memory;  // from the view's first texel to the end of the image
    TexelFormat format;
    uint32_t width = 0;  // texels of the view's base level; 1 in a dimension that it does not have
    uint32_t height = 0;
    uint32_t depth = 0;        // slices, or array layers
    uint32_t row_pitch = 0;    // bytes, of the base level
    uint32_t slice_pitch = 0;  // bytes, of the base level
    uint32_t levels = 0;       // or samples, of which images with several have one level
    uint32_t swizzle = kIdentitySwizzle;
    float scale[4] = {};  // of normalised components: value = integer * scale
};

struct SampledImageDescriptor {
    ImageDescriptor image;
    uint32_t level_offsets[kMaxImageLevels] = {};  // bytes
};

// What a sampled image's descriptor has behind its swizzle. In a descriptor heap, where descriptors
// are no larger than an ImageDescriptor, there is the address of this instead.
struct SampledImageTail {
    float scale[4] = {};
    uint32_t level_offsets[kMaxImageLevels] = {};
};
inline constexpr uint32_t kImageTailAt = offsetof(ImageDescriptor, scale);
struct ShortSampledImageDescriptor {
    std::byte head[kImageTailAt];  // of an ImageDescriptor
    uint64_t tail = 0;             // never 0 in a descriptor that kernels read
    uint64_t reserved = 0;
};

enum class AddressMode : uint8_t {
    kRepeat,
    kMirroredRepeat,
    kClampToEdge,
    kClampToBorder,
    kMirrorClampToEdge
};
enum class Reduction : uint8_t { kAverage, kMin, kMax };
// How a reference value, the left operand, is compared with a texel.
enum class Compare : uint8_t {
    kNever,
    kLess,
    kEqual,
    kLessOrEqual,
    kGreater,
    kNotEqual,
    kGreaterOrEqual,
    kAlways
};

// SamplerDescriptor::flags.
inline constexpr uint32_t kSamplerMagLinear = 1;
inline constexpr uint32_t kSamplerMinLinear = 2;
inline constexpr uint32_t kSamplerMipLinear = 4;
inline constexpr uint32_t kSamplerUnnormalized = 8;
inline constexpr uint32_t kSamplerAddressShift = 4;  // three of four bits: u, v, w
inline constexpr uint32_t kSamplerCompareShift = 16;
inline constexpr uint32_t kSamplerReductionShift = 20;
inline constexpr uint32_t kSamplerNonSeamless = 1u << 24;  // faces of cubes have edges

// What the biases of a sampler and of an instruction may come to together, either way.
inline constexpr float kMaxSamplerLodBias = 16;

struct SamplerDescriptor {
    uint32_t flags = 0;
    float lod_bias = 0;
    float min_lod = 0;
    float max_lod = 0;
    uint32_t border[4] = {};  // bits of floats or integers
};

struct CombinedImageSamplerDescriptor {
    SampledImageDescriptor image;
    SamplerDescriptor sampler;
};

static_assert(sizeof(TexelFormat) == 4);
static_assert(offsetof(TexelFormat, texel_class) * 8 == kTexelClassShift);
static_assert(offsetof(TexelFormat, bytes) * 8 == kTexelBytesShift);
static_assert(offsetof(TexelFormat, sign_shift) * 8 == kTexelSignShiftShift);
static_assert(sizeof(ImageDescriptor) == 64);
static_assert(offsetof(ImageDescriptor, format) == 16);
static_assert(offsetof(ImageDescriptor, width) == 20);
static_assert(offsetof(ImageDescriptor, depth) == 28);
static_assert(offsetof(ImageDescriptor, row_pitch) == 32);
static_assert(offsetof(ImageDescriptor, slice_pitch) == 36);
static_assert(offsetof(ImageDescriptor, levels) == 40);
static_assert(offsetof(ImageDescriptor, swizzle) == 44);
static_assert(offsetof(ImageDescriptor, scale) == 48);
static_assert(sizeof(SampledImageDescriptor) == 128);
static_assert(sizeof(SampledImageDescriptor) == kImageTailAt + sizeof(SampledImageTail));
static_assert(sizeof(ShortSampledImageDescriptor) == sizeof(ImageDescriptor));
static_assert(sizeof(SamplerDescriptor) == 32);
static_assert(offsetof(SamplerDescriptor, border) == 16);
static_assert(sizeof(CombinedImageSamplerDescriptor) == 160);

}  // namespace fornax::hal

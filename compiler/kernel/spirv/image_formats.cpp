#include "compiler/kernel/spirv/image_formats.h"

namespace fornax::kernel::spirv {

using hal::ComponentBits;
using hal::MakeTexelFormat;
using hal::TexelClass;
using hal::TexelFormat;
using hal::TexelLayout;

// The formats of the SPIR-V specification, "Image Format". One component of 64 bits lies in memory
// like two of 32.
std::optional<TexelFormat> FormatOf(spv::ImageFormat format) {
    using F = spv::ImageFormat;
    using L = TexelLayout;
    using C = TexelClass;
    switch (format) {
        case F::Rgba32f:
            return MakeTexelFormat(L::k32x4, C::kFloat);
        case F::Rgba16f:
            return MakeTexelFormat(L::k16x4, C::kHalf);
        case F::R32f:
            return MakeTexelFormat(L::k32, C::kFloat);
        case F::Rgba8:
            return MakeTexelFormat(L::k8x4, C::kUnorm);
        case F::Rgba8Snorm:
            return MakeTexelFormat(L::k8x4, C::kSnorm);
        case F::Rg32f:
            return MakeTexelFormat(L::k32x2, C::kFloat);
        case F::Rg16f:
            return MakeTexelFormat(L::k16x2, C::kHalf);
        case F::R11fG11fB10f:
            return MakeTexelFormat(L::k11_11_10, C::kHalf);
        case F::R16f:
            return MakeTexelFormat(L::k16, C::kHalf);
        case F::Rgba16:
            return MakeTexelFormat(L::k16x4, C::kUnorm);
        case F::Rgb10A2:
            return MakeTexelFormat(L::k10_10_10_2, C::kUnorm);
        case F::Rg16:
            return MakeTexelFormat(L::k16x2, C::kUnorm);
        case F::Rg8:
            return MakeTexelFormat(L::k8x2, C::kUnorm);
        case F::R16:
            return MakeTexelFormat(L::k16, C::kUnorm);
        case F::R8:
            return MakeTexelFormat(L::k8, C::kUnorm);
        case F::Rgba16Snorm:
            return MakeTexelFormat(L::k16x4, C::kSnorm);
        case F::Rg16Snorm:
            return MakeTexelFormat(L::k16x2, C::kSnorm);
        case F::Rg8Snorm:
            return MakeTexelFormat(L::k8x2, C::kSnorm);
        case F::R16Snorm:
            return MakeTexelFormat(L::k16, C::kSnorm);
        case F::R8Snorm:
            return MakeTexelFormat(L::k8, C::kSnorm);
        case F::Rgba32i:
            return MakeTexelFormat(L::k32x4, C::kSint);
        case F::Rgba16i:
            return MakeTexelFormat(L::k16x4, C::kSint);
        case F::Rgba8i:
            return MakeTexelFormat(L::k8x4, C::kSint);
        case F::R32i:
            return MakeTexelFormat(L::k32, C::kSint);
        case F::Rg32i:
            return MakeTexelFormat(L::k32x2, C::kSint);
        case F::Rg16i:
            return MakeTexelFormat(L::k16x2, C::kSint);
        case F::Rg8i:
            return MakeTexelFormat(L::k8x2, C::kSint);
        case F::R16i:
            return MakeTexelFormat(L::k16, C::kSint);
        case F::R8i:
            return MakeTexelFormat(L::k8, C::kSint);
        case F::Rgba32ui:
            return MakeTexelFormat(L::k32x4, C::kUint);
        case F::Rgba16ui:
            return MakeTexelFormat(L::k16x4, C::kUint);
        case F::Rgba8ui:
            return MakeTexelFormat(L::k8x4, C::kUint);
        case F::R32ui:
            return MakeTexelFormat(L::k32, C::kUint);
        case F::Rgb10a2ui:
            return MakeTexelFormat(L::k10_10_10_2, C::kUint);
        case F::Rg32ui:
            return MakeTexelFormat(L::k32x2, C::kUint);
        case F::Rg16ui:
            return MakeTexelFormat(L::k16x2, C::kUint);
        case F::Rg8ui:
            return MakeTexelFormat(L::k8x2, C::kUint);
        case F::R16ui:
            return MakeTexelFormat(L::k16, C::kUint);
        case F::R64ui:
            return MakeTexelFormat(L::k32x2, C::kUint);
        case F::R64i:
            return MakeTexelFormat(L::k32x2, C::kSint);
        case F::R8ui:
            return MakeTexelFormat(L::k8, C::kUint);
        default:
            return std::nullopt;
    }
}

uint32_t WordOf(const TexelFormat& format) {
    return static_cast<uint32_t>(format.layout) << hal::kTexelLayoutShift |
           static_cast<uint32_t>(format.texel_class) << hal::kTexelClassShift |
           static_cast<uint32_t>(format.bytes) << hal::kTexelBytesShift |
           static_cast<uint32_t>(format.sign_shift) << hal::kTexelSignShiftShift;
}

}  // namespace fornax::kernel::spirv

// The table of formats and the queries about them ("Formats" in the specification; the formats that
// it demands for what a compute device can do are all here). Conversions on the host are only for
// clears.
#include "driver/format.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "driver/chain.h"
#include "driver/compat.h"
#include "driver/entry_point.h"
#include "driver/limits.h"
#include "driver/report.h"

namespace fornax::driver {
namespace {

using hal::TexelClass;
using hal::TexelLayout;

constexpr VkFormatFeatureFlags2 kTransfer = VK_FORMAT_FEATURE_2_TRANSFER_SRC_BIT |
                                            VK_FORMAT_FEATURE_2_TRANSFER_DST_BIT |
                                            VK_FORMAT_FEATURE_2_HOST_IMAGE_TRANSFER_BIT;
constexpr VkFormatFeatureFlags2 kStorageAnyway =
    VK_FORMAT_FEATURE_2_STORAGE_READ_WITHOUT_FORMAT_BIT |
    VK_FORMAT_FEATURE_2_STORAGE_WRITE_WITHOUT_FORMAT_BIT;

// What a format is used for.
enum Use : uint32_t {
    kSampled = 1,
    kStorage = 2,  // images and texel buffers
    kUniformTexels = 4,
    kAtomic = 8,  // beside kStorage
    kDepth = 16,
    kStencil = 32,
    // What only queues for graphics can use, and "Required Format Support" demands all the same; it
    // makes no difference to anybody, unlike promises that an image can be an attachment.
    kVertices = 64,
};

// Where red, green, blue and alpha are among the components.
constexpr uint32_t kRgba = 0x3210;
constexpr uint32_t kRgb = 0x5210;
constexpr uint32_t kRg = 0x5410;
constexpr uint32_t kGr = 0x5401;
constexpr uint32_t kR = 0x5440;
constexpr uint32_t kBgra = 0x3012;
constexpr uint32_t kBgr = 0x5012;
constexpr uint32_t kArgb = 0x0321;
constexpr uint32_t kAbgr = 0x0123;
constexpr uint32_t kA = 0x0444;
static_assert(static_cast<uint32_t>(hal::Swizzle::kZero) == 4);
static_assert(static_cast<uint32_t>(hal::Swizzle::kOne) == 5);

constexpr FormatInfo Make(VkFormat format,
                          TexelLayout layout,
                          TexelClass texel_class,
                          uint32_t swizzle,
                          uint32_t uses) {
    FormatInfo info{.format = format,
                    .texel = MakeTexelFormat(layout, texel_class),
                    .swizzle = swizzle,
                    .aspects = VK_IMAGE_ASPECT_COLOR_BIT,
                    .image_features = kTransfer,
                    .buffer_features = 0};
    const bool integer = texel_class == TexelClass::kUint || texel_class == TexelClass::kSint;
    if (uses & kSampled) {
        // Likewise the sources of blits.
        info.image_features |=
            VK_FORMAT_FEATURE_2_SAMPLED_IMAGE_BIT | VK_FORMAT_FEATURE_2_BLIT_SRC_BIT;
        if (!integer) {
            info.image_features |= VK_FORMAT_FEATURE_2_SAMPLED_IMAGE_FILTER_LINEAR_BIT |
                                   VK_FORMAT_FEATURE_2_SAMPLED_IMAGE_FILTER_MINMAX_BIT;
        }
    }
    if (uses & (kDepth | kStencil)) {
        info.aspects = (uses & kDepth ? VkImageAspectFlags{VK_IMAGE_ASPECT_DEPTH_BIT} : 0) |
                       (uses & kStencil ? VkImageAspectFlags{VK_IMAGE_ASPECT_STENCIL_BIT} : 0);
    }
    // Depths and stencil values are for queues for graphics alone
    // (VUID-VkCopyMemoryToImageIndirectInfoKHR-commandBuffer-07674).
    if (info.aspects == VK_IMAGE_ASPECT_COLOR_BIT) {
        info.image_features |= VK_FORMAT_FEATURE_2_COPY_IMAGE_INDIRECT_DST_BIT_KHR;
    }
    // No queue is for graphics; those that are there copy either aspect (maintenance10).
    if (uses & kDepth) {
        info.image_features |= VK_FORMAT_FEATURE_2_SAMPLED_IMAGE_DEPTH_COMPARISON_BIT |
                               VK_FORMAT_FEATURE_2_DEPTH_COPY_ON_COMPUTE_QUEUE_BIT_KHR |
                               VK_FORMAT_FEATURE_2_DEPTH_COPY_ON_TRANSFER_QUEUE_BIT_KHR;
    }
    if (uses & kStencil) {
        info.image_features |= VK_FORMAT_FEATURE_2_STENCIL_COPY_ON_COMPUTE_QUEUE_BIT_KHR |
                               VK_FORMAT_FEATURE_2_STENCIL_COPY_ON_TRANSFER_QUEUE_BIT_KHR;
    }
    if (uses & kStorage) {
        info.image_features |= VK_FORMAT_FEATURE_2_STORAGE_IMAGE_BIT | kStorageAnyway;
        info.buffer_features |= VK_FORMAT_FEATURE_2_STORAGE_TEXEL_BUFFER_BIT | kStorageAnyway;
    }
    if (uses & kAtomic) {
        info.image_features |= VK_FORMAT_FEATURE_2_STORAGE_IMAGE_ATOMIC_BIT;
        info.buffer_features |= VK_FORMAT_FEATURE_2_STORAGE_TEXEL_BUFFER_ATOMIC_BIT;
    }
    if (uses & kUniformTexels) {
        info.buffer_features |= VK_FORMAT_FEATURE_2_UNIFORM_TEXEL_BUFFER_BIT;
    }
    if (uses & kVertices) {
        info.buffer_features |= VK_FORMAT_FEATURE_2_VERTEX_BUFFER_BIT;
    }
    if (!(uses & (kSampled | kStorage))) {
        info.image_features = 0;
    }
    return info;
}

constexpr uint32_t kRead = kSampled | kUniformTexels;
constexpr uint32_t kTexels = kRead | kStorage;
constexpr uint32_t kAll = kTexels | kVertices;
using L = TexelLayout;
using C = TexelClass;

// clang-format off
constexpr FormatInfo kFormats[] = {
    // Colors of R64 are two words for one component, as VkClearColorValue has them, too.
    // Images of scaled formats would be cleared with floats ("Interpretation of Numeric Format"), and
    // Khronos' tests clear what can be copied with integers.
    Make(VK_FORMAT_R4G4_UNORM_PACK8,         L::k4x2,        C::kUnorm, kGr,   kRead),
    Make(VK_FORMAT_R4G4B4A4_UNORM_PACK16,    L::k4x4,        C::kUnorm, kAbgr, kRead),
    Make(VK_FORMAT_B4G4R4A4_UNORM_PACK16,    L::k4x4,        C::kUnorm, kArgb, kRead),
    Make(VK_FORMAT_R5G6B5_UNORM_PACK16,      L::k5_6_5,      C::kUnorm, kBgr,  kRead),
    Make(VK_FORMAT_B5G6R5_UNORM_PACK16,      L::k5_6_5,      C::kUnorm, kRgb,  kRead),
    Make(VK_FORMAT_R5G5B5A1_UNORM_PACK16,    L::k1_5_5_5,    C::kUnorm, kAbgr, kRead),
    Make(VK_FORMAT_B5G5R5A1_UNORM_PACK16,    L::k1_5_5_5,    C::kUnorm, kArgb, kRead),
    Make(VK_FORMAT_A1R5G5B5_UNORM_PACK16,    L::k5_5_5_1,    C::kUnorm, kBgra, kRead),
    Make(VK_FORMAT_R8_UNORM,                 L::k8,          C::kUnorm, kR,    kAll),
    Make(VK_FORMAT_R8_SNORM,                 L::k8,          C::kSnorm, kR,    kAll),
    Make(VK_FORMAT_R8_USCALED,               L::k8,          C::kUscaled, kR,    kUniformTexels),
    Make(VK_FORMAT_R8_SSCALED,               L::k8,          C::kSscaled, kR,    kUniformTexels),
    Make(VK_FORMAT_R8_UINT,                  L::k8,          C::kUint,  kR,    kAll),
    Make(VK_FORMAT_R8_SINT,                  L::k8,          C::kSint,  kR,    kAll),
    Make(VK_FORMAT_R8_SRGB,                  L::k8,          C::kSrgb,  kR,    kRead),
    Make(VK_FORMAT_R8G8_UNORM,               L::k8x2,        C::kUnorm, kRg,   kAll),
    Make(VK_FORMAT_R8G8_SNORM,               L::k8x2,        C::kSnorm, kRg,   kAll),
    Make(VK_FORMAT_R8G8_USCALED,             L::k8x2,        C::kUscaled, kRg,   kUniformTexels),
    Make(VK_FORMAT_R8G8_SSCALED,             L::k8x2,        C::kSscaled, kRg,   kUniformTexels),
    Make(VK_FORMAT_R8G8_UINT,                L::k8x2,        C::kUint,  kRg,   kAll),
    Make(VK_FORMAT_R8G8_SINT,                L::k8x2,        C::kSint,  kRg,   kAll),
    Make(VK_FORMAT_R8G8_SRGB,                L::k8x2,        C::kSrgb,  kRg,   kRead),
    Make(VK_FORMAT_R8G8B8_UNORM,             L::k8x3,        C::kUnorm, kRgb,  kRead),
    Make(VK_FORMAT_R8G8B8_SNORM,             L::k8x3,        C::kSnorm, kRgb,  kRead),
    Make(VK_FORMAT_R8G8B8_USCALED,           L::k8x3,        C::kUscaled, kRgb,  kUniformTexels),
    Make(VK_FORMAT_R8G8B8_SSCALED,           L::k8x3,        C::kSscaled, kRgb,  kUniformTexels),
    Make(VK_FORMAT_R8G8B8_UINT,              L::k8x3,        C::kUint,  kRgb,  kRead),
    Make(VK_FORMAT_R8G8B8_SINT,              L::k8x3,        C::kSint,  kRgb,  kRead),
    Make(VK_FORMAT_R8G8B8_SRGB,              L::k8x3,        C::kSrgb,  kRgb,  kRead),
    Make(VK_FORMAT_B8G8R8_UNORM,             L::k8x3,        C::kUnorm, kBgr,  kRead),
    Make(VK_FORMAT_B8G8R8_SNORM,             L::k8x3,        C::kSnorm, kBgr,  kRead),
    Make(VK_FORMAT_B8G8R8_USCALED,           L::k8x3,        C::kUscaled, kBgr,  kUniformTexels),
    Make(VK_FORMAT_B8G8R8_SSCALED,           L::k8x3,        C::kSscaled, kBgr,  kUniformTexels),
    Make(VK_FORMAT_B8G8R8_UINT,              L::k8x3,        C::kUint,  kBgr,  kRead),
    Make(VK_FORMAT_B8G8R8_SINT,              L::k8x3,        C::kSint,  kBgr,  kRead),
    Make(VK_FORMAT_B8G8R8_SRGB,              L::k8x3,        C::kSrgb,  kBgr,  kRead),
    Make(VK_FORMAT_R8G8B8A8_UNORM,           L::k8x4,        C::kUnorm, kRgba, kAll),
    Make(VK_FORMAT_R8G8B8A8_SNORM,           L::k8x4,        C::kSnorm, kRgba, kAll),
    Make(VK_FORMAT_R8G8B8A8_USCALED,         L::k8x4,        C::kUscaled, kRgba, kUniformTexels),
    Make(VK_FORMAT_R8G8B8A8_SSCALED,         L::k8x4,        C::kSscaled, kRgba, kUniformTexels),
    Make(VK_FORMAT_R8G8B8A8_UINT,            L::k8x4,        C::kUint,  kRgba, kAll),
    Make(VK_FORMAT_R8G8B8A8_SINT,            L::k8x4,        C::kSint,  kRgba, kAll),
    Make(VK_FORMAT_R8G8B8A8_SRGB,            L::k8x4,        C::kSrgb,  kRgba, kRead),
    Make(VK_FORMAT_B8G8R8A8_UNORM,           L::k8x4,        C::kUnorm, kBgra, kAll),
    Make(VK_FORMAT_B8G8R8A8_SNORM,           L::k8x4,        C::kSnorm, kBgra, kTexels),
    Make(VK_FORMAT_B8G8R8A8_USCALED,         L::k8x4,        C::kUscaled, kBgra, kUniformTexels),
    Make(VK_FORMAT_B8G8R8A8_SSCALED,         L::k8x4,        C::kSscaled, kBgra, kUniformTexels),
    Make(VK_FORMAT_B8G8R8A8_UINT,            L::k8x4,        C::kUint,  kBgra, kTexels),
    Make(VK_FORMAT_B8G8R8A8_SINT,            L::k8x4,        C::kSint,  kBgra, kTexels),
    Make(VK_FORMAT_B8G8R8A8_SRGB,            L::k8x4,        C::kSrgb,  kBgra, kRead),
    Make(VK_FORMAT_A8B8G8R8_UNORM_PACK32,    L::k8x4,        C::kUnorm, kRgba, kAll),
    Make(VK_FORMAT_A8B8G8R8_SNORM_PACK32,    L::k8x4,        C::kSnorm, kRgba, kAll),
    Make(VK_FORMAT_A8B8G8R8_USCALED_PACK32,  L::k8x4,        C::kUscaled, kRgba, kUniformTexels),
    Make(VK_FORMAT_A8B8G8R8_SSCALED_PACK32,  L::k8x4,        C::kSscaled, kRgba, kUniformTexels),
    Make(VK_FORMAT_A8B8G8R8_UINT_PACK32,     L::k8x4,        C::kUint,  kRgba, kAll),
    Make(VK_FORMAT_A8B8G8R8_SINT_PACK32,     L::k8x4,        C::kSint,  kRgba, kAll),
    Make(VK_FORMAT_A8B8G8R8_SRGB_PACK32,     L::k8x4,        C::kSrgb,  kRgba, kRead),
    Make(VK_FORMAT_A2R10G10B10_UNORM_PACK32, L::k10_10_10_2, C::kUnorm, kBgra, kTexels),
    Make(VK_FORMAT_A2R10G10B10_SNORM_PACK32, L::kInt10x3_2,  C::kSnorm, kBgra, kRead),
    Make(VK_FORMAT_A2R10G10B10_USCALED_PACK32, L::k10_10_10_2, C::kUscaled, kBgra, kUniformTexels),
    Make(VK_FORMAT_A2R10G10B10_SSCALED_PACK32, L::kInt10x3_2,  C::kSscaled, kBgra, kUniformTexels),
    Make(VK_FORMAT_A2R10G10B10_UINT_PACK32,  L::k10_10_10_2, C::kUint,  kBgra, kTexels),
    Make(VK_FORMAT_A2R10G10B10_SINT_PACK32,  L::kInt10x3_2,  C::kSint,  kBgra, kRead),
    Make(VK_FORMAT_A2B10G10R10_UNORM_PACK32, L::k10_10_10_2, C::kUnorm, kRgba, kAll),
    Make(VK_FORMAT_A2B10G10R10_SNORM_PACK32, L::kInt10x3_2,  C::kSnorm, kRgba, kRead),
    Make(VK_FORMAT_A2B10G10R10_USCALED_PACK32, L::k10_10_10_2, C::kUscaled, kRgba, kUniformTexels),
    Make(VK_FORMAT_A2B10G10R10_SSCALED_PACK32, L::kInt10x3_2,  C::kSscaled, kRgba, kUniformTexels),
    Make(VK_FORMAT_A2B10G10R10_UINT_PACK32,  L::k10_10_10_2, C::kUint,  kRgba, kTexels),
    Make(VK_FORMAT_A2B10G10R10_SINT_PACK32,  L::kInt10x3_2,  C::kSint,  kRgba, kRead),
    Make(VK_FORMAT_R16_UNORM,                L::k16,         C::kUnorm, kR,    kAll),
    Make(VK_FORMAT_R16_SNORM,                L::k16,         C::kSnorm, kR,    kAll),
    Make(VK_FORMAT_R16_USCALED,              L::k16,         C::kUscaled, kR,    kUniformTexels),
    Make(VK_FORMAT_R16_SSCALED,              L::k16,         C::kSscaled, kR,    kUniformTexels),
    Make(VK_FORMAT_R16_UINT,                 L::k16,         C::kUint,  kR,    kAll),
    Make(VK_FORMAT_R16_SINT,                 L::k16,         C::kSint,  kR,    kAll),
    Make(VK_FORMAT_R16_SFLOAT,               L::k16,         C::kHalf,  kR,    kAll),
    Make(VK_FORMAT_R16G16_UNORM,             L::k16x2,       C::kUnorm, kRg,   kAll),
    Make(VK_FORMAT_R16G16_SNORM,             L::k16x2,       C::kSnorm, kRg,   kAll),
    Make(VK_FORMAT_R16G16_USCALED,           L::k16x2,       C::kUscaled, kRg,   kUniformTexels),
    Make(VK_FORMAT_R16G16_SSCALED,           L::k16x2,       C::kSscaled, kRg,   kUniformTexels),
    Make(VK_FORMAT_R16G16_UINT,              L::k16x2,       C::kUint,  kRg,   kAll),
    Make(VK_FORMAT_R16G16_SINT,              L::k16x2,       C::kSint,  kRg,   kAll),
    Make(VK_FORMAT_R16G16_SFLOAT,            L::k16x2,       C::kHalf,  kRg,   kAll),
    Make(VK_FORMAT_R16G16B16_UNORM,          L::k16x3,       C::kUnorm, kRgb,  kRead),
    Make(VK_FORMAT_R16G16B16_SNORM,          L::k16x3,       C::kSnorm, kRgb,  kRead),
    Make(VK_FORMAT_R16G16B16_USCALED,        L::k16x3,       C::kUscaled, kRgb,  kUniformTexels),
    Make(VK_FORMAT_R16G16B16_SSCALED,        L::k16x3,       C::kSscaled, kRgb,  kUniformTexels),
    Make(VK_FORMAT_R16G16B16_UINT,           L::k16x3,       C::kUint,  kRgb,  kRead),
    Make(VK_FORMAT_R16G16B16_SINT,           L::k16x3,       C::kSint,  kRgb,  kRead),
    Make(VK_FORMAT_R16G16B16_SFLOAT,         L::k16x3,       C::kHalf,  kRgb,  kRead),
    Make(VK_FORMAT_R16G16B16A16_UNORM,       L::k16x4,       C::kUnorm, kRgba, kAll),
    Make(VK_FORMAT_R16G16B16A16_SNORM,       L::k16x4,       C::kSnorm, kRgba, kAll),
    Make(VK_FORMAT_R16G16B16A16_USCALED,     L::k16x4,       C::kUscaled, kRgba, kUniformTexels),
    Make(VK_FORMAT_R16G16B16A16_SSCALED,     L::k16x4,       C::kSscaled, kRgba, kUniformTexels),
    Make(VK_FORMAT_R16G16B16A16_UINT,        L::k16x4,       C::kUint,  kRgba, kAll),
    Make(VK_FORMAT_R16G16B16A16_SINT,        L::k16x4,       C::kSint,  kRgba, kAll),
    Make(VK_FORMAT_R16G16B16A16_SFLOAT,      L::k16x4,       C::kHalf,  kRgba, kAll),
    Make(VK_FORMAT_R32_UINT,                 L::k32,         C::kUint,  kR,    kAll | kAtomic),
    Make(VK_FORMAT_R32_SINT,                 L::k32,         C::kSint,  kR,    kAll | kAtomic),
    Make(VK_FORMAT_R32_SFLOAT,               L::k32,         C::kFloat, kR,    kAll | kAtomic),
    Make(VK_FORMAT_R32G32_UINT,              L::k32x2,       C::kUint,  kRg,   kAll),
    Make(VK_FORMAT_R32G32_SINT,              L::k32x2,       C::kSint,  kRg,   kAll),
    Make(VK_FORMAT_R32G32_SFLOAT,            L::k32x2,       C::kFloat, kRg,   kAll),
    Make(VK_FORMAT_R32G32B32_UINT,           L::k32x3,       C::kUint,  kRgb,  kRead | kVertices),
    Make(VK_FORMAT_R32G32B32_SINT,           L::k32x3,       C::kSint,  kRgb,  kRead | kVertices),
    Make(VK_FORMAT_R32G32B32_SFLOAT,         L::k32x3,       C::kFloat, kRgb,  kRead | kVertices),
    Make(VK_FORMAT_R32G32B32A32_UINT,        L::k32x4,       C::kUint,  kRgba, kAll),
    Make(VK_FORMAT_R32G32B32A32_SINT,        L::k32x4,       C::kSint,  kRgba, kAll),
    Make(VK_FORMAT_R32G32B32A32_SFLOAT,      L::k32x4,       C::kFloat, kRgba, kAll),
    Make(VK_FORMAT_R64_UINT,                 L::k32x2,       C::kUint,  kR,    kStorage | kAtomic),
    Make(VK_FORMAT_R64_SINT,                 L::k32x2,       C::kSint,  kR,    kStorage | kAtomic),
    Make(VK_FORMAT_B10G11R11_UFLOAT_PACK32,  L::k11_11_10,   C::kHalf,  kRgb,  kTexels),
    Make(VK_FORMAT_E5B9G9R9_UFLOAT_PACK32,   L::k9_9_9_5,    C::kSharedExponent, kRgb,  kRead),
    Make(VK_FORMAT_D16_UNORM,                L::k16,         C::kUnorm, kR,    kSampled | kDepth),
    Make(VK_FORMAT_X8_D24_UNORM_PACK32,      L::k24,         C::kUnorm, kR,    kSampled | kDepth),
    Make(VK_FORMAT_D32_SFLOAT,               L::k32,         C::kFloat, kR,    kSampled | kDepth),
    Make(VK_FORMAT_S8_UINT,                  L::k8,          C::kUint,  kR,    kSampled | kStencil),
    Make(VK_FORMAT_D16_UNORM_S8_UINT,        L::k16,         C::kUnorm, kR,    kSampled | kDepth | kStencil),
    Make(VK_FORMAT_D24_UNORM_S8_UINT,        L::k24,         C::kUnorm, kR,    kSampled | kDepth | kStencil),
    Make(VK_FORMAT_D32_SFLOAT_S8_UINT,       L::k32,         C::kFloat, kR,    kSampled | kDepth | kStencil),
    Make(VK_FORMAT_BC1_RGB_UNORM_BLOCK,      L::kBc1,        C::kUnorm, kRgb,  kSampled),
    Make(VK_FORMAT_BC1_RGB_SRGB_BLOCK,       L::kBc1,        C::kSrgb,  kRgb,  kSampled),
    Make(VK_FORMAT_BC1_RGBA_UNORM_BLOCK,     L::kBc1,        C::kUnorm, kRgba, kSampled),
    Make(VK_FORMAT_BC1_RGBA_SRGB_BLOCK,      L::kBc1,        C::kSrgb,  kRgba, kSampled),
    Make(VK_FORMAT_BC2_UNORM_BLOCK,          L::kBc2,        C::kUnorm, kRgba, kSampled),
    Make(VK_FORMAT_BC2_SRGB_BLOCK,           L::kBc2,        C::kSrgb,  kRgba, kSampled),
    Make(VK_FORMAT_BC3_UNORM_BLOCK,          L::kBc3,        C::kUnorm, kRgba, kSampled),
    Make(VK_FORMAT_BC3_SRGB_BLOCK,           L::kBc3,        C::kSrgb,  kRgba, kSampled),
    Make(VK_FORMAT_BC4_UNORM_BLOCK,          L::kBc4,        C::kUnorm, kR,    kSampled),
    Make(VK_FORMAT_BC4_SNORM_BLOCK,          L::kBc4,        C::kSnorm, kR,    kSampled),
    Make(VK_FORMAT_BC5_UNORM_BLOCK,          L::kBc5,        C::kUnorm, kRg,   kSampled),
    Make(VK_FORMAT_BC5_SNORM_BLOCK,          L::kBc5,        C::kSnorm, kRg,   kSampled),
    Make(VK_FORMAT_BC6H_UFLOAT_BLOCK,        L::kBc6,        C::kHalf,  kRgb,  kSampled),
    Make(VK_FORMAT_BC6H_SFLOAT_BLOCK,        L::kBc6Signed,  C::kHalf,  kRgb,  kSampled),
    Make(VK_FORMAT_BC7_UNORM_BLOCK,          L::kBc7,        C::kUnorm, kRgba, kSampled),
    Make(VK_FORMAT_BC7_SRGB_BLOCK,           L::kBc7,        C::kSrgb,  kRgba, kSampled),
    Make(VK_FORMAT_ETC2_R8G8B8_UNORM_BLOCK,  L::kEtc2,       C::kUnorm, kRgb,  kSampled),
    Make(VK_FORMAT_ETC2_R8G8B8_SRGB_BLOCK,   L::kEtc2,       C::kSrgb,  kRgb,  kSampled),
    Make(VK_FORMAT_ETC2_R8G8B8A1_UNORM_BLOCK, L::kEtc2Alpha1, C::kUnorm, kRgba, kSampled),
    Make(VK_FORMAT_ETC2_R8G8B8A1_SRGB_BLOCK, L::kEtc2Alpha1, C::kSrgb,  kRgba, kSampled),
    Make(VK_FORMAT_ETC2_R8G8B8A8_UNORM_BLOCK, L::kEtc2Alpha8, C::kUnorm, kRgba, kSampled),
    Make(VK_FORMAT_ETC2_R8G8B8A8_SRGB_BLOCK, L::kEtc2Alpha8, C::kSrgb,  kRgba, kSampled),
    Make(VK_FORMAT_EAC_R11_UNORM_BLOCK,      L::kEac,        C::kUnorm, kR,    kSampled),
    Make(VK_FORMAT_EAC_R11_SNORM_BLOCK,      L::kEac,        C::kSnorm, kR,    kSampled),
    Make(VK_FORMAT_EAC_R11G11_UNORM_BLOCK,   L::kEacX2,      C::kUnorm, kRg,   kSampled),
    Make(VK_FORMAT_EAC_R11G11_SNORM_BLOCK,   L::kEacX2,      C::kSnorm, kRg,   kSampled),
    Make(VK_FORMAT_A4R4G4B4_UNORM_PACK16,    L::k4x4,        C::kUnorm, kBgra, kRead),
    Make(VK_FORMAT_A4B4G4R4_UNORM_PACK16,    L::k4x4,        C::kUnorm, kRgba, kRead),
    Make(VK_FORMAT_A1B5G5R5_UNORM_PACK16,    L::k5_5_5_1,    C::kUnorm, kRgba, kRead),
    Make(VK_FORMAT_A8_UNORM,                 L::k8,          C::kUnorm, kA,    kRead),
};
// clang-format on
static_assert(std::ranges::is_sorted(kFormats, {}, &FormatInfo::format));

// --- Conversions to texels
// ----------------------------------------------------------------------------------------

uint32_t FromHalfBits(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = bits >> 16 & 0x8000;
    const double magnitude = std::fabs(static_cast<double>(value));
    if (std::isnan(value)) {
        return sign | 0x7e00;
    }
    if (magnitude >= 65520) {
        return sign | 0x7c00;
    }
    // In steps of the last digit: of 2^-24 for denormals.
    const int exponent = std::max(-14, magnitude == 0 ? -14 : std::ilogb(magnitude));
    const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
    // A carry out of the digits is the next exponent.
    return sign | (static_cast<uint32_t>(exponent + 14) * 1024 + steps);
}

uint32_t SmallFloatBits(float value, uint32_t dropped_bits, float largest) {
    if (std::isnan(value)) {
        return 0x7e00u >> dropped_bits;
    }
    if (value > largest) {
        value = std::isinf(value) ? value : largest;
    }
    return FromHalfBits(std::max(value, 0.0f)) >> dropped_bits;
}

float ToSrgb(float linear) {
    const double c = std::clamp(static_cast<double>(linear), 0.0, 1.0);
    return static_cast<float>(c <= 0.0031308 ? c * 12.92 : 1.055 * std::pow(c, 1 / 2.4) - 0.055);
}

// Khronos Data Format, "Conversion to shared exponent".
std::array<uint32_t, 4> ToSharedExponent(const float (&color)[4]) {
    constexpr double kLargest = 511.0 / 512 * 65536;
    double limited[3];
    for (int i = 0; i < 3; ++i) {
        limited[i] = color[i] > 0 ? std::min<double>(color[i], kLargest) : 0;
    }
    const double largest = std::max({limited[0], limited[1], limited[2]});
    int exponent = std::max(-16, largest > 0 ? std::ilogb(largest) : -16) + 16;
    if (std::floor(largest / std::exp2(exponent - 24) + 0.5) == 512) {
        ++exponent;
    }
    std::array<uint32_t, 4> bits{};
    for (size_t i = 0; i < 3; ++i) {
        bits[i] = static_cast<uint32_t>(std::floor(limited[i] / std::exp2(exponent - 24) + 0.5));
    }
    bits[3] = static_cast<uint32_t>(exponent);
    return bits;
}

uint32_t ToNormalized(float value, TexelClass texel_class, uint32_t bits) {
    const bool is_signed = texel_class == TexelClass::kSnorm;
    const double low = is_signed ? -1 : 0;
    const double clamped = std::isnan(value) ? low : std::clamp<double>(value, low, 1);
    const double most = std::exp2(bits - (is_signed ? 1 : 0)) - 1;
    return static_cast<uint32_t>(static_cast<int32_t>(std::nearbyint(clamped * most)));
}

uint32_t ToComponent(const FormatInfo& format,
                     const VkClearColorValue& color,
                     size_t channel,
                     uint32_t bits,
                     size_t place) {
    const float value = color.float32[channel];
    switch (format.texel.texel_class) {
        case TexelClass::kUint:
        case TexelClass::kSint:
        case TexelClass::kFloat:
            return color.uint32[channel];
        case TexelClass::kUnorm:
        case TexelClass::kSnorm:
            return ToNormalized(value, format.texel.texel_class, bits);
        case TexelClass::kSrgb:
            return ToNormalized(channel == 3 ? value : ToSrgb(value), TexelClass::kUnorm, bits);
        case TexelClass::kHalf:
            if (format.texel.layout == TexelLayout::k11_11_10) {
                return SmallFloatBits(value, place == 2 ? 5 : 4, place == 2 ? 64512.0f : 65024.0f);
            }
            return FromHalfBits(value);
        case TexelClass::kUscaled:
        case TexelClass::kSscaled:
            return 0;  // of no image
        case TexelClass::kSharedExponent:
            return ToSharedExponent(color.float32)[place];
    }
    return 0;
}

}  // namespace

std::span<const FormatInfo> AllFormats() {
    return kFormats;
}

const FormatInfo* FindFormat(VkFormat format) {
    const auto found = std::ranges::lower_bound(kFormats, format, {}, &FormatInfo::format);
    return found != std::end(kFormats) && found->format == format ? &*found : nullptr;
}

VkFormatFeatureFlags2 ImageFeatures(const FormatInfo& format, VkImageTiling tiling) {
    // Dawn wants depths. Nobody has wanted colors yet.
    const bool attachment =
        GetCompatModes().graphics && !format.is_color() && tiling == VK_IMAGE_TILING_OPTIMAL;
    return attachment ? format.image_features | VK_FORMAT_FEATURE_2_DEPTH_STENCIL_ATTACHMENT_BIT
                      : format.image_features;
}

bool AreCompatible(const FormatInfo& image, const FormatInfo& view, bool of_blocks) {
    if (image.format == view.format) {
        return true;
    }
    if (!image.is_color() || !view.is_color() || image.texel.bytes != view.texel.bytes) {
        return false;
    }
    // A8_UNORM is the one uncompressed format that has a class to itself.
    if (image.format == VK_FORMAT_A8_UNORM || view.format == VK_FORMAT_A8_UNORM) {
        return false;
    }
    if (image.block_log2() == 0 || view.block_log2() != 0) {
        const auto of_class = [](const FormatInfo& format) {
            const bool is_signed = format.texel.layout == TexelLayout::kBc6Signed;
            return is_signed ? TexelLayout::kBc6 : format.texel.layout;
        };
        return image.block_log2() == view.block_log2() &&
               (image.block_log2() == 0 || of_class(image) == of_class(view));
    }
    return of_blocks;
}

uint32_t ComposeSwizzle(uint32_t inner, const VkComponentMapping& outer) {
    const VkComponentSwizzle components[] = {outer.r, outer.g, outer.b, outer.a};
    uint32_t composed = 0;
    for (uint32_t i = 0; i < 4; ++i) {
        auto from = [&](uint32_t component) {
            return inner >> (component * hal::kSwizzleBits) & 15;
        };
        uint32_t value = from(i);
        switch (components[i]) {
            case VK_COMPONENT_SWIZZLE_ZERO:
                value = static_cast<uint32_t>(hal::Swizzle::kZero);
                break;
            case VK_COMPONENT_SWIZZLE_ONE:
                value = static_cast<uint32_t>(hal::Swizzle::kOne);
                break;
            case VK_COMPONENT_SWIZZLE_R:
            case VK_COMPONENT_SWIZZLE_G:
            case VK_COMPONENT_SWIZZLE_B:
            case VK_COMPONENT_SWIZZLE_A:
                value = from(static_cast<uint32_t>(components[i] - VK_COMPONENT_SWIZZLE_R));
                break;
            default:
                break;
        }
        composed |= value << (i * hal::kSwizzleBits);
    }
    return composed;
}

std::array<std::byte, 16> PackColor(const FormatInfo& format, const VkClearColorValue& color) {
    std::array<uint32_t, 4> words{};
    uint32_t at = 0;
    const auto all_bits = hal::ComponentBits(format.texel.layout);
    for (size_t place = 0; place < 4 && all_bits[place] != 0; ++place) {
        const uint32_t bits = all_bits[place];
        size_t channel = place;
        for (size_t i = 0; i < 4; ++i) {
            if ((format.swizzle >> (i * hal::kSwizzleBits) & 15) == place) {
                channel = i;
            }
        }
        const uint32_t value = ToComponent(format, color, channel, bits, place);
        words[at / 32] |= (bits == 32 ? value : value & ((1u << bits) - 1)) << at % 32;
        at += bits;
    }
    return std::bit_cast<std::array<std::byte, 16>>(words);
}

std::array<std::byte, 16> PackDepthStencil(const FormatInfo& format,
                                           uint32_t plane,
                                           const VkClearDepthStencilValue& value) {
    const hal::TexelFormat texel = format.PlaneTexel(plane);
    uint32_t word = value.stencil & 0xff;
    if (texel.texel_class == TexelClass::kUnorm) {
        word = ToNormalized(value.depth, TexelClass::kUnorm, hal::ComponentBits(texel.layout)[0]);
    } else if (texel.texel_class == TexelClass::kFloat) {
        word = std::bit_cast<uint32_t>(value.depth);
    }
    return std::bit_cast<std::array<std::byte, 16>>(std::array<uint32_t, 4>{word});
}

// --- Queries
// ----------------------------------------------------------------------------------------

FORNAX_ENTRY_POINT(void)
vkGetPhysicalDeviceFormatProperties2(VkPhysicalDevice,
                                     VkFormat format,
                                     VkFormatProperties2* properties) {
    const FormatInfo* info = FindFormat(format);
    const VkFormatFeatureFlags2 linear =
        info ? ImageFeatures(*info, VK_IMAGE_TILING_LINEAR) : VkFormatFeatureFlags2{0};
    const VkFormatFeatureFlags2 optimal =
        info ? ImageFeatures(*info, VK_IMAGE_TILING_OPTIMAL) : VkFormatFeatureFlags2{0};
    const VkFormatFeatureFlags2 buffer = info ? info->buffer_features : 0;
    // The older flags are the lower 31 bits of the newer ones.
    const auto narrow = [](VkFormatFeatureFlags2 flags) {
        return static_cast<VkFormatFeatureFlags>(flags & 0x7fffffff);
    };
    properties->formatProperties = {.linearTilingFeatures = narrow(linear),
                                    .optimalTilingFeatures = narrow(optimal),
                                    .bufferFeatures = narrow(buffer)};
    auto* wide =
        FindInChain<VkFormatProperties3>(properties->pNext, VK_STRUCTURE_TYPE_FORMAT_PROPERTIES_3);
    if (wide) {
        wide->linearTilingFeatures = linear;
        wide->optimalTilingFeatures = optimal;
        wide->bufferFeatures = buffer;
    }
    // "Initially, no new format flag bits are defined."
    auto* widest = FindInChain<VkFormatProperties4KHR>(properties->pNext,
                                                       VK_STRUCTURE_TYPE_FORMAT_PROPERTIES_4_KHR);
    if (widest) {
        widest->linearTilingFeatures = widest->optimalTilingFeatures = widest->bufferFeatures = 0;
    }
}

FORNAX_ENTRY_POINT(void)
vkGetPhysicalDeviceFormatProperties(VkPhysicalDevice physical_device,
                                    VkFormat format,
                                    VkFormatProperties* properties) {
    VkFormatProperties2 out{.sType = VK_STRUCTURE_TYPE_FORMAT_PROPERTIES_2};
    vkGetPhysicalDeviceFormatProperties2(physical_device, format, &out);
    *properties = out.formatProperties;
}

}  // namespace fornax::driver

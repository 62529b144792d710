// Formats: what each one is to kernels, and what images and texel buffers of it can do. The table
// in format.cpp is the only list of formats.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <vulkan/vulkan_core.h>

#include "hal/image_abi.h"

namespace fornax::driver {

// Stencil values lie in a plane of their own behind depths.
inline constexpr uint32_t kMaxPlanes = 2;

struct FormatInfo {
    VkFormat format;
    hal::TexelFormat texel;  // of colors, or of the depth if there is one, or of the stencil value
    uint32_t swizzle;  // from the texel's components, lowest bits first, to red, green, blue, alpha
    VkImageAspectFlags aspects;
    VkFormatFeatureFlags2 image_features;  // of both tilings; see ImageFeatures
    VkFormatFeatureFlags2 buffer_features;

    uint32_t plane_count() const { return aspects == kDepthStencil ? 2 : 1; }
    uint32_t PlaneOf(VkImageAspectFlags aspect) const {
        return plane_count() == 2 && aspect == VK_IMAGE_ASPECT_STENCIL_BIT ? 1 : 0;
    }
    hal::TexelFormat PlaneTexel(uint32_t plane) const { return plane == 0 ? texel : kStencilTexel; }
    uint32_t texel_bytes() const { return texel.bytes; }
    // Texels of a block are 1 << block_log2() each way.
    uint32_t block_log2() const { return hal::BlockLog2(texel.layout); }
    // The blocks of a number of texels, the last of which may fill a block in part.
    uint32_t Blocks(uint32_t texels) const {
        return (texels + (1u << block_log2()) - 1) >> block_log2();
    }
    bool is_color() const { return aspects == VK_IMAGE_ASPECT_COLOR_BIT; }

    static constexpr VkImageAspectFlags kDepthStencil =
        VK_IMAGE_ASPECT_DEPTH_BIT | VK_IMAGE_ASPECT_STENCIL_BIT;
    static constexpr hal::TexelFormat kStencilTexel =
        hal::MakeTexelFormat(hal::TexelLayout::k8, hal::TexelClass::kUint);
};

// All formats that have any features, by VkFormat.
std::span<const FormatInfo> AllFormats();
// Null for a format without features.
const FormatInfo* FindFormat(VkFormat format);

// What images of the format and tiling can do: their features, and with FORNAX_COMPAT=graphics
// depths and stencil values can be attachments.
VkFormatFeatureFlags2 ImageFeatures(const FormatInfo& format, VkImageTiling tiling);

// A swizzle of four components on top of another.
uint32_t ComposeSwizzle(uint32_t inner, const VkComponentMapping& outer);

// Whether views of an image of one format may have the other ("Format Compatibility Classes"; with
// `of_blocks` also a format whose texels are as large as blocks).
bool AreCompatible(const FormatInfo& image, const FormatInfo& view, bool of_blocks);

// One texel of the format, of which texel_bytes() count ("Clearing Images": values are converted as
// when a kernel stores them).
std::array<std::byte, 16> PackColor(const FormatInfo& format, const VkClearColorValue& color);
// The same for a depth or stencil value, of a plane's texels.
std::array<std::byte, 16> PackDepthStencil(const FormatInfo& format,
                                           uint32_t plane,
                                           const VkClearDepthStencilValue& value);

}  // namespace fornax::driver

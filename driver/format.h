// Formats: what each one is to kernels, and what images and texel buffers of it can do. The table
// in format.cpp is the only list of formats.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <vulkan/vulkan_core.h>

#include "hal/image_abi.h"

namespace fornax::driver {

struct FormatInfo {
    VkFormat format;
    hal::TexelFormat texel;
    uint32_t swizzle;  // from the texel's components, lowest bits first, to red, green, blue, alpha
    VkFormatFeatureFlags2 image_features;  // of both tilings
    VkFormatFeatureFlags2 buffer_features;

    uint32_t texel_bytes() const { return 1u << texel.bytes_log2; }
    bool is_depth() const;
};

// All formats that have any features, by VkFormat.
std::span<const FormatInfo> AllFormats();
// Null for a format without features.
const FormatInfo* FindFormat(VkFormat format);

// A swizzle of four components on top of another.
uint32_t ComposeSwizzle(uint32_t inner, const VkComponentMapping& outer);

// One texel of the format, of which texel_bytes() count ("Clearing Images": values are converted as
// when a kernel stores them).
std::array<std::byte, 16> PackColor(const FormatInfo& format, const VkClearColorValue& color);

}  // namespace fornax::driver

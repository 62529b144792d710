// Texels of compressed blocks, decoded a second time and plainly.
#pragma once

#include <array>
#include <cstdint>

#include <vulkan/vulkan_core.h>

namespace fornax::test {

uint32_t BlockBytes(VkFormat format);  // 0 for formats without blocks
// Red, green, blue and alpha of a texel of a block of four by four, sRGB not yet linear.
std::array<double, 4> DecodeBcBlock(VkFormat format, const uint8_t* block, uint32_t x, uint32_t y);
std::array<double, 4> DecodeBlock(VkFormat format, const uint8_t* block, uint32_t x, uint32_t y);

}  // namespace fornax::test

// Copies between memory and images, of which copies of buffers and those by device address are
// made.
#pragma once

#include <vulkan/vulkan_core.h>

namespace fornax::driver {

// Records the copy of one region between an image and what a buffer at the address `memory` would
// hold.
void CopyMemoryImage(VkCommandBuffer command_buffer,
                     uint64_t memory,
                     VkImage image,
                     const VkBufferImageCopy2& region,
                     bool to_image);

}  // namespace fornax::driver

// Limits that the driver's own code relies on, beside those of the HAL.
#pragma once

#include <cstdint>

#include "hal/command_stream.h"
#include "hal/device.h"
#include "hal/image_abi.h"

namespace fornax::driver {

// Descriptors of one kind that one stage may use. What bounds them in truth is memory: a set of
// this many buffers takes 16 MiB, of as many combined image samplers 160 MiB.
inline constexpr uint32_t kMaxDescriptors = 1u << 20;
// All dynamic descriptors of a pipeline layout together have kMaxDynamicOffsets offsets.
inline constexpr uint32_t kMaxDynamicUniformBuffers = hal::kMaxDynamicOffsets / 2;
inline constexpr uint32_t kMaxDynamicStorageBuffers = hal::kMaxDynamicOffsets / 2;
inline constexpr uint32_t kMaxPushDescriptors = 64;
// VK_EXT_descriptor_buffer: each set may be in a buffer of its own.
inline constexpr uint32_t kMaxDescriptorBuffers = hal::kMaxDescriptorSets;
// Kernels reach into descriptor heaps by 32-bit offsets.
inline constexpr uint64_t kMaxDescriptorHeapBytes = uint64_t{1} << 31;
// Any memory may hold descriptors: what one process can address.
inline constexpr uint64_t kDescriptorAddressSpaceBytes = uint64_t{1} << 47;
// Inline uniform blocks take their set's memory, like descriptors.
inline constexpr uint32_t kMaxInlineUniformBlockBytes = 64 * 1024;
inline constexpr uint32_t kMaxInlineBlocks = 64;  // of a set, and of a stage
inline constexpr uint32_t kMaxInlineUniformBytes = kMaxInlineBlocks * kMaxInlineUniformBlockBytes;
// Below what Linux lets a process map (vm.max_map_count, 65,530).
inline constexpr uint32_t kMaxMemoryAllocations = 32768;
// Vectors of kernels load fastest from cache lines; storage itself only needs the element.
inline constexpr uint64_t kBufferAlignment = hal::kMemoryAlignment;
inline constexpr uint64_t kMinOffsetAlignment = 16;
inline constexpr uint64_t kNonCoherentAtomSize = 64;
// Images. Kernels reach the texels of an image by 32-bit offsets.
inline constexpr uint64_t kImageAlignment = hal::kMemoryAlignment;
inline constexpr uint64_t kMaxImageBytes = UINT32_MAX;
inline constexpr uint32_t kMaxImageDimension = 16384;
inline constexpr uint32_t kMaxImageLayers = 2048;
// VkSampleCountFlags. The samples of a texel lie side by side.
inline constexpr uint32_t kSampleCounts = 1 | 2 | 4 | 8;
inline constexpr uint32_t kMaxTexelBufferElements = 1u << 27;
static_assert(uint64_t{kMaxTexelBufferElements} * 16 <= UINT32_MAX);
static_assert(kMaxImageDimension >> (hal::kMaxImageLevels - 1) == 0);

}  // namespace fornax::driver

// Limits that the driver's own code relies on, beside those of the HAL.
#pragma once

#include <cstdint>

#include "hal/command_stream.h"
#include "hal/device.h"

namespace fornax::driver {

// Descriptors of one kind that one stage may use. What bounds them in truth is memory: a set of
// this many takes 16 MiB.
inline constexpr uint32_t kMaxDescriptors = 1u << 20;
// All dynamic descriptors of a pipeline layout together have kMaxDynamicOffsets offsets.
inline constexpr uint32_t kMaxDynamicUniformBuffers = hal::kMaxDynamicOffsets / 2;
inline constexpr uint32_t kMaxDynamicStorageBuffers = hal::kMaxDynamicOffsets / 2;
inline constexpr uint32_t kMaxPushDescriptors = 64;
// Below what Linux lets a process map (vm.max_map_count, 65,530).
inline constexpr uint32_t kMaxMemoryAllocations = 32768;
// Vectors of kernels load fastest from cache lines; storage itself only needs the element.
inline constexpr uint64_t kBufferAlignment = hal::kMemoryAlignment;
inline constexpr uint64_t kMinOffsetAlignment = 16;
inline constexpr uint64_t kNonCoherentAtomSize = 64;

}  // namespace fornax::driver

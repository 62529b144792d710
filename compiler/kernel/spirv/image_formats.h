// Formats that shaders declare, as the device's descriptors say them.
#pragma once

#include <cstdint>
#include <optional>

#include <spirv/unified1/spirv.hpp11>

#include "hal/image_abi.h"

namespace fornax::kernel::spirv {

// Nothing for a format that the device does not have.
std::optional<hal::TexelFormat> FormatOf(spv::ImageFormat format);

// The word of an ImageDescriptor that holds the format.
uint32_t WordOf(const hal::TexelFormat& format);

}  // namespace fornax::kernel::spirv

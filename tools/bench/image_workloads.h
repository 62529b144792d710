// Copies through images: the formats and the ways to read texels that `fornax bench` compares with
// copies between buffers of the same texels.
#pragma once

#include <cstdint>
#include <string>

#include "tools/bench/workload.h"

namespace fornax::bench {

enum class ImageFormat : uint8_t { kRgba8, kRgba16f, kRgba32f, kR32f };
enum class ImageSource : uint8_t { kBuffer, kStorage, kFetch, kNearest, kLinear };

struct ImageCase {
    ImageFormat format;
    ImageSource source;
    uint32_t dimensions;  // 2 or 3
};

uint32_t TexelBytes(ImageFormat format);
std::string ImageTitle(const ImageCase& image_case);
// Images of `side` squared texels; three-dimensional ones have as many.
WorkloadResult CreateImageCopy(Device& device, const ImageCase& image_case, uint32_t side);

}  // namespace fornax::bench

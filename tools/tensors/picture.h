// PNG and JPEG files as tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/types.h"

namespace fornax::tensors {

// Rows of pixels of three channels, red, green and blue, a byte each. What is transparent is laid
// over black; grey has three equal channels.
struct Picture {
    int64_t width = 0;
    int64_t height = 0;
    std::vector<uint8_t> pixels;
};

// Whether the path ends as a picture's does: .png, .jpg, .jpeg, in any case.
bool IsPicturePath(const std::string& path);

// Reads a file that is not trusted, PNG or JPEG by its first bytes. The error is a sentence that
// names it. Orientation in a camera's notes (EXIF) is not looked at.
Result<Picture> ReadPicture(const std::string& path);

enum class PictureFit {
    kStretch,  // both sides to the size
    kCrop,     // the picture covers the size; what hangs over is cut off, the same on both sides
    kPad,      // the size holds the picture; the rest is black
};

struct PictureOptions {
    std::optional<int64_t> width, height;  // else the tensor's, else the picture's
    PictureFit fit = PictureFit::kStretch;
    bool channels_last = false;    // NHWC, else NCHW
    std::string channels = "RGB";  // RGB, BGR or GRAY
    // A channel with the values 0..255 becomes (value * scale - mean) / std. One number for all
    // channels or one for each.
    double scale = 1.0 / 255;
    std::vector<double> mean = {0};
    std::vector<double> std = {1};
};

// Averages where a picture becomes smaller, and interpolates linearly where it becomes larger.
Picture Resize(const Picture& picture, int64_t width, int64_t height, PictureFit fit);

// The picture, in its size, as [1, channels, height, width] or [1, height, width, channels]. Floats
// are scaled and normalised; u8 keeps the bytes. The error is a sentence.
Result<graph::Tensor> ToTensor(const Picture& picture,
                               const PictureOptions& options,
                               graph::ElementType element);

}  // namespace fornax::tensors

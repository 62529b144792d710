// Resizing and normalising; the formats are in picture_files.cpp.
#include "tools/tensors/picture.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace fornax::tensors {
namespace {

constexpr int64_t kChannels = 3;

// What one place of a resized line is made of: places `first`... of the original with weights.
struct Tap {
    int64_t first = 0;
    std::vector<float> weights;
};

// Triangles as wide as two places of whichever side has the larger ones, centres on centres.
std::vector<Tap> Taps(int64_t from, int64_t to) {
    std::vector<Tap> taps(static_cast<size_t>(to));
    const double ratio = static_cast<double>(from) / static_cast<double>(to);
    const double radius = std::max(ratio, 1.0);
    for (int64_t i = 0; i < to; ++i) {
        Tap& tap = taps[static_cast<size_t>(i)];
        const double centre = (static_cast<double>(i) + 0.5) * ratio;
        tap.first = std::max<int64_t>(0, static_cast<int64_t>(std::ceil(centre - radius - 0.5)));
        const int64_t last =
            std::min(from - 1, static_cast<int64_t>(std::floor(centre + radius - 0.5)));
        double sum = 0;
        for (int64_t place = tap.first; place <= last; ++place) {
            const double distance = std::abs(static_cast<double>(place) + 0.5 - centre);
            tap.weights.push_back(static_cast<float>(std::max(0.0, 1 - distance / radius)));
            sum += static_cast<double>(tap.weights.back());
        }
        for (float& weight : tap.weights) {
            weight /= static_cast<float>(sum);
        }
    }
    return taps;
}

// Lines of `from` places become lines of `to`: `lines` of them, `stride` between places.
std::vector<float> ResizeLines(const std::vector<float>& pixels,
                               int64_t lines,
                               int64_t from,
                               int64_t to,
                               int64_t stride) {
    const std::vector<Tap> taps = Taps(from, to);
    std::vector<float> resized(static_cast<size_t>(lines * to * stride), 0.0f);
    for (int64_t line = 0; line < lines; ++line) {
        for (int64_t i = 0; i < to; ++i) {
            float* out = resized.data() + (line * to + i) * stride;
            const Tap& tap = taps[static_cast<size_t>(i)];
            for (size_t k = 0; k < tap.weights.size(); ++k) {
                const float* in =
                    pixels.data() + (line * from + tap.first + static_cast<int64_t>(k)) * stride;
                for (int64_t c = 0; c < stride; ++c) {
                    out[c] += tap.weights[k] * in[c];
                }
            }
        }
    }
    return resized;
}

Picture Stretch(const Picture& picture, int64_t width, int64_t height) {
    if (picture.width == width && picture.height == height) {
        return picture;
    }
    std::vector<float> pixels(picture.pixels.begin(), picture.pixels.end());
    pixels = ResizeLines(pixels, picture.height, picture.width, width, kChannels);
    pixels = ResizeLines(pixels, 1, picture.height, height, width * kChannels);
    Picture resized{width, height, {}};
    resized.pixels.reserve(pixels.size());
    for (const float value : pixels) {
        resized.pixels.push_back(static_cast<uint8_t>(std::clamp(std::lround(value), 0L, 255L)));
    }
    return resized;
}

// The part of the picture at (left, top), which may lie outside of it: there it is black.
Picture Window(const Picture& picture, int64_t left, int64_t top, int64_t width, int64_t height) {
    Picture window{width, height,
                   std::vector<uint8_t>(static_cast<size_t>(width * height * kChannels), 0)};
    for (int64_t y = std::max<int64_t>(0, -top); y < std::min(height, picture.height - top); ++y) {
        const int64_t x = std::max<int64_t>(0, -left);
        const int64_t count = std::min(width, picture.width - left) - x;
        if (count > 0) {
            std::copy_n(picture.pixels.begin() + ((y + top) * picture.width + x + left) * kChannels,
                        count * kChannels, window.pixels.begin() + (y * width + x) * kChannels);
        }
    }
    return window;
}

// The number of a list for a channel.
double Of(const std::vector<double>& numbers, size_t channel) {
    return numbers.size() == 1 ? numbers[0] : numbers[channel];
}

}  // namespace

Picture Resize(const Picture& picture, int64_t width, int64_t height, PictureFit fit) {
    if (fit == PictureFit::kStretch) {
        return Stretch(picture, width, height);
    }
    const double x_ratio = static_cast<double>(width) / static_cast<double>(picture.width);
    const double y_ratio = static_cast<double>(height) / static_cast<double>(picture.height);
    const double ratio =
        fit == PictureFit::kCrop ? std::max(x_ratio, y_ratio) : std::min(x_ratio, y_ratio);
    const auto side = [&](int64_t from, int64_t wanted, double own_ratio) {
        return own_ratio == ratio
                   ? wanted
                   : std::max<int64_t>(1, std::lround(static_cast<double>(from) * ratio));
    };
    const Picture resized = Stretch(picture, side(picture.width, width, x_ratio),
                                    side(picture.height, height, y_ratio));
    return Window(resized, (resized.width - width) / 2, (resized.height - height) / 2, width,
                  height);
}

Result<graph::Tensor> ToTensor(const Picture& picture,
                               const PictureOptions& options,
                               graph::ElementType element) {
    if (!graph::IsFloat(element) && element != graph::ElementType::kU8) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("A picture becomes floats or u8, and the input takes {}.",
                                 graph::Name(element))};
    }
    const bool is_grey = options.channels == "GRAY";
    const size_t channels = is_grey ? 1 : 3;
    for (const auto* list : {&options.mean, &options.std}) {
        if (list->size() != 1 && list->size() != channels) {
            return Error{
                ErrorCode::kInvalidArgument,
                fmt::format("{} numbers are given for {} channels.", list->size(), channels)};
        }
    }
    const auto count = static_cast<int64_t>(channels);
    std::vector<int64_t> dims = {1, count, picture.height, picture.width};
    if (options.channels_last) {
        dims = {1, picture.height, picture.width, count};
    }
    uint8_t* data = nullptr;
    graph::Tensor tensor = graph::Tensor::Zeros(element, dims, &data);
    const int64_t area = picture.width * picture.height;
    const size_t size_bytes = graph::BytesOf(element);
    for (int64_t pixel = 0; pixel < area; ++pixel) {
        const uint8_t* rgb = picture.pixels.data() + pixel * kChannels;
        for (size_t channel = 0; channel < channels; ++channel) {
            // Grey as ITU-R BT.601 weighs the colours.
            const double value = is_grey ? 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]
                                 : options.channels == "BGR" ? rgb[2 - channel]
                                                             : rgb[channel];
            const int64_t index = options.channels_last
                                      ? pixel * count + static_cast<int64_t>(channel)
                                      : static_cast<int64_t>(channel) * area + pixel;
            const graph::Scalar number =
                element == graph::ElementType::kU8
                    ? graph::Scalar::Integer(std::lround(value))
                    : graph::Scalar::Float((value * options.scale - Of(options.mean, channel)) /
                                           Of(options.std, channel));
            graph::WriteElement(element, number, data + static_cast<size_t>(index) * size_bytes);
        }
    }
    return tensor;
}

}  // namespace fornax::tensors

// Pooling over boxes that say how many samples they take.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "compiler/graph/host/tensors.h"

namespace fornax::graph::host {
namespace {

// Samples of a bin along an axis, and of all bins together, beyond which the boxes are taken for a
// mistake.
constexpr float kMaxSamples = 4096;
constexpr double kMaxWork = 1e11;

float FloatAt(const Tensor& tensor, int64_t index) {
    float value = 0;
    std::memcpy(&value, tensor.data->data() + index * 4, sizeof(value));
    return value;
}

// The bins of a box along one axis.
struct Bins {
    float begin = 0;
    float size = 0;       // of a bin
    int64_t samples = 0;  // of a bin

    float Place(int64_t bin, int64_t sample) const {
        return begin + static_cast<float>(bin) * size +
               (static_cast<float>(sample) + 0.5F) * size / static_cast<float>(samples);
    }
};

// Two neighbours along an axis and their weights; none outside of the image.
struct Neighbours {
    std::array<int64_t, 2> at = {0, 0};
    std::array<float, 2> weight = {0, 0};

    Neighbours(float place, int64_t size) {
        if (!(place >= -1) || place > static_cast<float>(size)) {
            return;
        }
        const float inside = std::clamp(place, 0.0F, static_cast<float>(size - 1));
        at[0] = static_cast<int64_t>(inside);
        at[1] = std::min(at[0] + 1, size - 1);
        weight[1] = inside - static_cast<float>(at[0]);
        weight[0] = 1 - weight[1];
    }
};

}  // namespace

// x f32 [batch, channels, height, width], boxes f32 [boxes, 4], the image of each box as i64. A bin
// has a sample for each element of the image that its side covers, rounded up.
Results RoiAlign(const op::HostCall& call, Arguments arguments) {
    FORNAX_RETURN_IF_ERROR(CheckCount(arguments, 3));
    const Tensor &x = arguments[0], &boxes = arguments[1], &images = arguments[2];
    const int64_t height = Attribute<int64_t>(call, "height");
    const int64_t width = Attribute<int64_t>(call, "width");
    if (x.element != ElementType::kF32 || boxes.element != ElementType::kF32 ||
        images.element != ElementType::kI64 || x.dims.size() != 4 || boxes.dims.size() != 2 ||
        boxes.dims[1] != 4 || images.count() != boxes.dims[0] || height < 1 || width < 1) {
        return Invalid("the image and the boxes do not fit");
    }
    const float scale = static_cast<float>(Attribute<double>(call, "scale"));
    const bool half_pixel = Attribute<int64_t>(call, "half_pixel") != 0;
    const bool greatest = Attribute<int64_t>(call, "max") != 0;
    const int64_t channels = x.dims[1];
    double work = 0;
    uint8_t* data = nullptr;
    Tensor result =
        Tensor::Zeros(ElementType::kF32, {boxes.dims[0], channels, height, width}, &data);
    const bool is_empty = x.dims[2] == 0 || x.dims[3] == 0;
    for (int64_t box = 0; box < boxes.dims[0] && !is_empty; ++box) {
        const int64_t image = images.At(box).integer;
        if (image < 0 || image >= x.dims[0]) {
            return Invalid(
                fmt::format("box {} is of the image {}; there are {}", box, image, x.dims[0]));
        }
        const auto bins_of = [&](int64_t column, int64_t count) {
            const float shift = half_pixel ? 0.5F : 0.0F;
            const float begin = FloatAt(boxes, box * 4 + column) * scale - shift;
            float size = FloatAt(boxes, box * 4 + column + 2) * scale - shift - begin;
            if (!half_pixel) {
                size = std::max(size, 1.0F);
            }
            const float bin = size / static_cast<float>(count);
            const float samples = std::ceil(bin);
            return Bins{begin, bin,
                        samples <= kMaxSamples ? static_cast<int64_t>(std::max(samples, 0.0F))
                                               : int64_t{-1}};
        };
        const Bins rows = bins_of(1, height), columns = bins_of(0, width);
        work += static_cast<double>(rows.samples) * static_cast<double>(columns.samples) *
                static_cast<double>(height) * static_cast<double>(width) *
                static_cast<double>(channels);
        if (rows.samples < 0 || columns.samples < 0 || work > kMaxWork) {
            return Invalid(fmt::format("box {} is too large for bins of at most {} samples a side",
                                       box, kMaxSamples));
        }
        for (int64_t channel = 0; channel < channels; ++channel) {
            const int64_t plane = (image * channels + channel) * x.dims[2] * x.dims[3];
            for (int64_t bin = 0; bin < height * width; ++bin) {
                float value = 0;
                for (int64_t i = 0; i < rows.samples; ++i) {
                    const Neighbours y(rows.Place(bin / width, i), x.dims[2]);
                    for (int64_t j = 0; j < columns.samples; ++j) {
                        const Neighbours z(columns.Place(bin % width, j), x.dims[3]);
                        float sum = 0, most = 0;
                        for (size_t corner = 0; corner < 4; ++corner) {
                            const size_t a = corner / 2, b = corner % 2;
                            const float part = y.weight[a] * z.weight[b] *
                                               FloatAt(x, plane + y.at[a] * x.dims[3] + z.at[b]);
                            most = corner == 0 ? part : std::max(most, part);
                            sum += part;
                        }
                        value = !greatest          ? value + sum
                                : i == 0 && j == 0 ? most
                                                   : std::max(value, most);
                    }
                }
                if (!greatest) {
                    value /=
                        static_cast<float>(std::max<int64_t>(rows.samples * columns.samples, 1));
                }
                const int64_t place = ((box * channels + channel) * height * width + bin) * 4;
                std::memcpy(data + place, &value, sizeof(value));
            }
        }
    }
    return std::vector<Tensor>{std::move(result)};
}

// x f32 [batch, channels, height, width], boxes f32 [boxes, 5]: the image, then its corners, the
// last of which belong to it. A bin gives the greatest element of all that it touches.
Results RoiMaxPool(const op::HostCall& call, Arguments arguments) {
    FORNAX_RETURN_IF_ERROR(CheckCount(arguments, 2));
    const Tensor &x = arguments[0], &boxes = arguments[1];
    const int64_t height = Attribute<int64_t>(call, "height");
    const int64_t width = Attribute<int64_t>(call, "width");
    if (x.element != ElementType::kF32 || boxes.element != ElementType::kF32 ||
        x.dims.size() != 4 || boxes.dims.size() != 2 || boxes.dims[1] != 5 || height < 1 ||
        width < 1) {
        return Invalid("the image and the boxes do not fit");
    }
    const float scale = static_cast<float>(Attribute<double>(call, "scale"));
    const int64_t channels = x.dims[1];
    uint8_t* data = nullptr;
    Tensor result =
        Tensor::Zeros(ElementType::kF32, {boxes.dims[0], channels, height, width}, &data);
    for (int64_t box = 0; box < boxes.dims[0]; ++box) {
        const float image = FloatAt(boxes, box * 5);
        if (!(image >= 0) || image >= static_cast<float>(x.dims[0])) {
            return Invalid(
                fmt::format("box {} is of the image {}; there are {}", box, image, x.dims[0]));
        }
        // The elements [first, second) of a bin along an axis.
        const auto range_of = [&](int64_t column, int64_t bin, int64_t count, int64_t size) {
            const float low = std::round(FloatAt(boxes, box * 5 + column) * scale);
            const float high = std::round(FloatAt(boxes, box * 5 + column + 2) * scale);
            const float step = std::max(high - low + 1, 1.0F) / static_cast<float>(count);
            const auto inside = [&](float place) {
                return static_cast<int64_t>(
                    std::clamp(place + low, 0.0F, static_cast<float>(size)));
            };
            return std::pair(inside(std::floor(static_cast<float>(bin) * step)),
                             inside(std::ceil(static_cast<float>(bin + 1) * step)));
        };
        for (int64_t corner = 1; corner < 5; ++corner) {
            if (!std::isfinite(FloatAt(boxes, box * 5 + corner) * scale)) {
                return Invalid(fmt::format("a corner of box {} is not finite", box));
            }
        }
        for (int64_t bin = 0; bin < height * width; ++bin) {
            const auto [top, bottom] = range_of(2, bin / width, height, x.dims[2]);
            const auto [left, right] = range_of(1, bin % width, width, x.dims[3]);
            for (int64_t channel = 0; channel < channels && top < bottom && left < right;
                 ++channel) {
                const int64_t plane =
                    (static_cast<int64_t>(image) * channels + channel) * x.dims[2] * x.dims[3];
                float most = -INFINITY;
                for (int64_t row = top; row < bottom; ++row) {
                    for (int64_t column = left; column < right; ++column) {
                        most = std::max(most, FloatAt(x, plane + row * x.dims[3] + column));
                    }
                }
                const int64_t place = ((box * channels + channel) * height * width + bin) * 4;
                std::memcpy(data + place, &most, sizeof(most));
            }
        }
    }
    return std::vector<Tensor>{std::move(result)};
}

}  // namespace fornax::graph::host

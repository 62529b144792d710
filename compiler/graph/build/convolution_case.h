// Convolutions whose gradients tests compare with the formula.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "compiler/graph/build/convolve.h"

namespace fornax::graph {

struct ConvolutionCase {
    int64_t batch, channels, outputs;
    std::array<int64_t, 2> image, taps, strides, dilations, low, high;

    SpatialWindow window() const {
        SpatialWindow window;
        for (size_t i = 0; i < 2; ++i) {
            window.size.emplace_back(taps[i]);
            window.strides.push_back(strides[i]);
            window.dilations.push_back(dilations[i]);
            window.low.emplace_back(low[i]);
            window.high.emplace_back(high[i]);
        }
        return window;
    }

    // Height and width of the result.
    std::array<int64_t, 2> size() const {
        std::array<int64_t, 2> size = {};
        for (size_t i = 0; i < 2; ++i) {
            const int64_t reach = (taps[i] - 1) * dilations[i];
            size[i] = (image[i] + low[i] + high[i] - reach - 1) / strides[i] + 1;
        }
        return size;
    }
};

// Small ones, so that all sums are exact.
inline Tensor RandomIntegers(std::mt19937& random, const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (const int64_t dim : dims) {
        count *= dim;
    }
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) {
        values.push_back(static_cast<float>(random() % 9) - 4);
    }
    return Tensor::FromFloats(dims, values);
}

}  // namespace fornax::graph

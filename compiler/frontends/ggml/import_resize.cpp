// UPSCALE: the two inner dimensions are interpolated, the outer ones repeat.
#include <algorithm>
#include <cmath>

#include "compiler/frontends/ggml/node.h"
#include "compiler/graph/build/index.h"

namespace fornax::ggml_frontend {
namespace {

using graph::Shape;
using graph::Val;

constexpr int32_t kNearest = 0, kLinear = 1, kCubic = 2;
constexpr int32_t kModeMask = 0xFF, kAlignCorners = 1 << 8, kAntialias = 1 << 9;

// One dimension: the result's size over the source's, and where a result's element lies.
struct Line {
    int64_t from = 0, to = 0;
    float scale = 1, offset = 0.5F;

    float PlaceOf(int64_t i) const { return (static_cast<float>(i) + offset) / scale - offset; }
    int64_t Inside(int64_t place) const { return std::clamp<int64_t>(place, 0, from - 1); }
};

// Places of the source for each element of the result, with their weights.
struct Taps {
    std::vector<std::vector<int64_t>> places;
    std::vector<std::vector<float>> weights;
};

Taps LinearTaps(const Line& line) {
    Taps taps{std::vector<std::vector<int64_t>>(2), std::vector<std::vector<float>>(2)};
    for (int64_t i = 0; i < line.to; ++i) {
        const float place = line.PlaceOf(i);
        const auto below = static_cast<int64_t>(std::floor(place));
        const int64_t first = line.Inside(below);
        const float share = std::clamp(place - static_cast<float>(first), 0.0F, 1.0F);
        taps.places[0].push_back(first);
        taps.places[1].push_back(line.Inside(below + 1));
        taps.weights[0].push_back(1 - share);
        taps.weights[1].push_back(share);
    }
    return taps;
}

// The cubic kernel with a = -0.75 at distances up to 1, and from 1 to 2.
float NearWeight(float x) {
    constexpr float kA = -0.75F;
    return ((kA + 2) * x - (kA + 3)) * x * x + 1;
}
float FarWeight(float x) {
    constexpr float kA = -0.75F;
    return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA;
}

Taps CubicTaps(const Line& line) {
    Taps taps{std::vector<std::vector<int64_t>>(4), std::vector<std::vector<float>>(4)};
    for (int64_t i = 0; i < line.to; ++i) {
        const float place = line.PlaceOf(i);
        const auto below = static_cast<int64_t>(std::floor(place));
        const float share = place - static_cast<float>(below);
        const float weights[] = {FarWeight(share + 1), NearWeight(share), NearWeight(1 - share),
                                 FarWeight(2 - share)};
        for (size_t tap = 0; tap < 4; ++tap) {
            taps.places[tap].push_back(line.Inside(below + static_cast<int64_t>(tap) - 1));
            taps.weights[tap].push_back(weights[tap]);
        }
    }
    return taps;
}

Val Interpolated(Val x, int64_t axis, const Taps& taps) {
    graph::Builder& builder = x.builder();
    std::vector<graph::Expr> dims(kDims, 1);
    dims[static_cast<size_t>(axis)] = static_cast<int64_t>(taps.places[0].size());
    Val sum;
    for (size_t tap = 0; tap < taps.places.size(); ++tap) {
        const auto count = static_cast<int64_t>(taps.places[tap].size());
        const Val weight = Reshape(
            builder.Constant(graph::Tensor::FromFloats({count}, taps.weights[tap])), Shape(dims));
        const Val term = graph::Take(x, builder.Integers(taps.places[tap]), axis) * weight;
        sum = sum ? sum + term : term;
    }
    return sum;
}

// [result, source]: triangles as wide as a result's element, each row summing to 1.
Val TriangleMatrix(graph::Builder& builder, const Line& line) {
    const float support = std::max(1.0F, 1 / line.scale);
    std::vector<float> matrix(static_cast<size_t>(line.from * line.to), 0);
    for (int64_t i = 0; i < line.to; ++i) {
        const float centre = (static_cast<float>(i) + line.offset) / line.scale;
        const auto first =
            std::max<int64_t>(static_cast<int64_t>(centre - support + line.offset), 0);
        const auto end =
            std::min<int64_t>(static_cast<int64_t>(centre + support + line.offset), line.from);
        float total = 0;
        for (int64_t place = first; place < end; ++place) {
            const float distance = (static_cast<float>(place) - centre + line.offset) / support;
            const float weight = std::max(1 - std::abs(distance), 0.0F);
            matrix[static_cast<size_t>(i * line.from + place)] = weight;
            total += weight;
        }
        for (int64_t place = first; total > 0 && place < end; ++place) {
            matrix[static_cast<size_t>(i * line.from + place)] /= total;
        }
    }
    return builder.Constant(graph::Tensor::FromFloats({line.to, line.from}, matrix));
}

Val Nearest(Val x, int64_t axis, const Line& line) {
    if (line.from == line.to) {
        return x;
    }
    std::vector<int64_t> places;
    for (int64_t i = 0; i < line.to; ++i) {
        places.push_back(line.Inside(static_cast<int64_t>(static_cast<float>(i) / line.scale)));
    }
    return graph::Take(x, x.builder().Integers(places), axis);
}

Val Upscale(const Node& node) {
    const int32_t flags = node.integer(0), mode = flags & kModeMask;
    if (mode > kCubic || (flags & ~(kModeMask | kAlignCorners | kAntialias)) != 0) {
        graph::FailUnsupported("this mode of resizing is not covered");
    }
    Line lines[kDims];
    for (size_t d = 0; d < kDims; ++d) {
        Line& line = lines[d];
        line.from = node.source(0).ne[d];
        line.to = node.tensor().ne[d];
        line.scale = static_cast<float>(line.to) / static_cast<float>(line.from);
        if ((flags & kAlignCorners) != 0) {
            line.offset = 0;
            if (d < 2 && line.from > 1 && line.to > 1) {
                line.scale = static_cast<float>(line.to - 1) / static_cast<float>(line.from - 1);
            }
        }
    }
    Val x = Nearest(Nearest(node.Float(0), 0, lines[3]), 1, lines[2]);
    if (mode == kNearest) {
        return Nearest(Nearest(x, 2, lines[1]), 3, lines[0]);
    }
    if (mode == kLinear && (flags & kAntialias) != 0) {
        graph::Builder& builder = node.builder();
        x = Contract(TriangleMatrix(builder, lines[1]), x, "Yy,ncyx->ncYx");
        return Contract(x, TriangleMatrix(builder, lines[0]), "ncYx,Xx->ncYX");
    }
    const auto taps = [&](const Line& line) {
        return mode == kLinear ? LinearTaps(line) : CubicTaps(line);
    };
    return Interpolated(Interpolated(x, 2, taps(lines[1])), 3, taps(lines[0]));
}

constexpr Operator kOperators[] = {{"UPSCALE", Upscale}};

}  // namespace

std::span<const Operator> ResizeOperators() {
    return kOperators;
}

}  // namespace fornax::ggml_frontend

// Resizing and sampling.
#include <fmt/format.h>

#include "compiler/frontends/torch/operator_families.h"
#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/resample.h"

namespace fornax::torch_frontend {
namespace {

using graph::Coordinates;
using graph::NearestMode;
using graph::ResizeAxis;
using graph::ResizeMode;
using graph::ResizeOptions;

// Scales that were given decide about places, else those that follow from the sizes.
std::vector<double> ScalesOf(Node& node, size_t rank) {
    if (node.Has("scale_factors")) {
        return node.Floats("scale_factors");
    }
    constexpr std::string_view kNames[] = {"scales_d", "scales_h", "scales_w"};
    std::vector<double> scales;
    for (size_t i = 0; i < rank; ++i) {
        const std::string_view name = rank == 1 ? "scales" : kNames[3 - rank + i];
        scales.push_back(node.Float(name, 0));
    }
    return scales;
}

void OutResized(Node& node, const ResizeOptions& options) {
    const Val x = node.In(node.Has("input") ? "input" : "self");
    const Shape shape = node.ResultType().shape;
    if (x.rank() < 3 || x.rank() > 5 || shape.rank() != static_cast<size_t>(x.rank())) {
        FailInvalid(fmt::format("{} is to become {}", x.shape().ToString(), shape.ToString()));
    }
    const size_t rank = static_cast<size_t>(x.rank() - 2);
    const std::vector<double> scales = ScalesOf(node, rank);
    if (scales.size() != rank) {
        FailInvalid(fmt::format("it has {} scales for {} axes", scales.size(), rank));
    }
    std::vector<ResizeAxis> axes;
    for (size_t i = 0; i < rank; ++i) {
        ResizeAxis axis;
        axis.axis = static_cast<int64_t>(i) + 2;
        axis.size = shape[i + 2];
        // Corners that are aligned leave nothing for a scale to decide.
        axis.scale = options.coordinates == Coordinates::kAlignCorners ? 0 : scales[i];
        if (!(axis.scale > 0) || axis.scale > INT32_MAX) {
            const int64_t to = node.builder().sizes().Fix(axis.size);
            const int64_t from = node.builder().sizes().Fix(x.dim(axis.axis));
            if (to < 1 || from < 1) {
                FailInvalid(fmt::format("an axis of {} is to have {} elements", from, to));
            }
            axis.scale = static_cast<double>(to) / static_cast<double>(from);
        }
        axes.push_back(axis);
    }
    node.Out(graph::Widened(x, [&](Val v) { return graph::Resize(v, axes, options); }));
}

void ImportNearest(Node& node) {
    ResizeOptions options;
    options.mode = ResizeMode::kNearest;
    options.nearest = NearestMode::kFloor;
    options.coordinates = Coordinates::kAsymmetric;
    OutResized(node, options);
}

void ImportNearestExact(Node& node) {
    ResizeOptions options;
    options.mode = ResizeMode::kNearest;
    options.nearest = NearestMode::kRoundPreferCeil;
    options.coordinates = Coordinates::kHalfPixel;
    OutResized(node, options);
}

template <ResizeMode mode>
void ImportInterpolated(Node& node) {
    if (node.ResultType().element == ElementType::kF64) {
        FailUnsupported("places and weights are computed in f32, and it interpolates f64");
    }
    ResizeOptions options;
    options.mode = mode;
    options.coordinates =
        node.Bool("align_corners") ? Coordinates::kAlignCorners : Coordinates::kHalfPixel;
    OutResized(node, options);
}

void ImportGridSample(Node& node) {
    constexpr ResizeMode kModes[] = {ResizeMode::kLinear, ResizeMode::kNearest, ResizeMode::kCubic};
    constexpr graph::SamplePadding kPaddings[] = {graph::SamplePadding::kZeros,
                                                  graph::SamplePadding::kBorder,
                                                  graph::SamplePadding::kReflection};
    const int64_t mode = node.Int("interpolation_mode"), padding = node.Int("padding_mode");
    if (mode < 0 || mode > 2 || padding < 0 || padding > 2) {
        FailInvalid(fmt::format("its modes are {} and {}", mode, padding));
    }
    const Val x = node.In("input");
    if (graph::IsNarrowFloat(x.element())) {
        FailUnsupported(
            "torch rounds the places of samples to the type of the image, "
            "which is narrow");
    }
    if (x.element() == ElementType::kF64) {
        FailUnsupported("places and weights are computed in f32, and it samples f64");
    }
    if (kModes[mode] == ResizeMode::kCubic) {
        FailUnsupported("it samples by cubic curves, which torch has other values of at edges");
    }
    node.Out(graph::GridSample(x, node.In("grid"), kModes[mode], kPaddings[padding],
                               node.Bool("align_corners")));
}

constexpr OperatorEntry kOperators[] = {
    {"_upsample_nearest_exact1d.default", ImportNearestExact},
    {"_upsample_nearest_exact1d.vec", ImportNearestExact},
    {"_upsample_nearest_exact2d.default", ImportNearestExact},
    {"_upsample_nearest_exact2d.vec", ImportNearestExact},
    {"_upsample_nearest_exact3d.default", ImportNearestExact},
    {"_upsample_nearest_exact3d.vec", ImportNearestExact},
    {"grid_sampler_2d.default", ImportGridSample},
    {"grid_sampler_3d.default", ImportGridSample},
    {"upsample_bicubic2d.default", ImportInterpolated<ResizeMode::kCubic>},
    {"upsample_bicubic2d.vec", ImportInterpolated<ResizeMode::kCubic>},
    {"upsample_bilinear2d.default", ImportInterpolated<ResizeMode::kLinear>},
    {"upsample_bilinear2d.vec", ImportInterpolated<ResizeMode::kLinear>},
    {"upsample_linear1d.default", ImportInterpolated<ResizeMode::kLinear>},
    {"upsample_linear1d.vec", ImportInterpolated<ResizeMode::kLinear>},
    {"upsample_nearest1d.default", ImportNearest},
    {"upsample_nearest1d.vec", ImportNearest},
    {"upsample_nearest2d.default", ImportNearest},
    {"upsample_nearest2d.vec", ImportNearest},
    {"upsample_nearest3d.default", ImportNearest},
    {"upsample_nearest3d.vec", ImportNearest},
    {"upsample_trilinear3d.default", ImportInterpolated<ResizeMode::kLinear>},
    {"upsample_trilinear3d.vec", ImportInterpolated<ResizeMode::kLinear>},
};

}  // namespace

std::span<const OperatorEntry> ResampleOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend

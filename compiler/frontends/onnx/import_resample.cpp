// Resizing and sampling.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/graph/build/resample.h"

namespace fornax::onnx_frontend {
namespace {

using graph::Coordinates;
using graph::NearestMode;
using graph::ResizeAxis;
using graph::ResizeMode;
using graph::ResizeOptions;

ResizeMode ReadMode(Node& node, std::string_view otherwise) {
    const std::string mode = node.Text("mode", otherwise);
    if (mode == "nearest") {
        return ResizeMode::kNearest;
    }
    if (mode == "linear" || mode == "bilinear") {
        return ResizeMode::kLinear;
    }
    if (mode == "cubic" || mode == "bicubic") {
        return ResizeMode::kCubic;
    }
    FailInvalid(fmt::format("its mode is \"{}\"", mode));
}

Coordinates ReadCoordinates(Node& node) {
    constexpr std::pair<std::string_view, Coordinates> kNames[] = {
        {"half_pixel", Coordinates::kHalfPixel},
        {"half_pixel_symmetric", Coordinates::kHalfPixelSymmetric},
        {"pytorch_half_pixel", Coordinates::kPytorchHalfPixel},
        {"align_corners", Coordinates::kAlignCorners},
        {"asymmetric", Coordinates::kAsymmetric},
        {"tf_crop_and_resize", Coordinates::kCropAndResize},
    };
    const std::string name = node.Text("coordinate_transformation_mode", "half_pixel");
    for (const auto& [known, coordinates] : kNames) {
        if (name == known) {
            return coordinates;
        }
    }
    FailUnsupported(fmt::format("its coordinate_transformation_mode is \"{}\"", name));
}

NearestMode ReadNearest(Node& node) {
    constexpr std::pair<std::string_view, NearestMode> kNames[] = {
        {"round_prefer_floor", NearestMode::kRoundPreferFloor},
        {"round_prefer_ceil", NearestMode::kRoundPreferCeil},
        {"floor", NearestMode::kFloor},
        {"ceil", NearestMode::kCeil},
    };
    const std::string name = node.Text("nearest_mode", "round_prefer_floor");
    for (const auto& [known, mode] : kNames) {
        if (name == known) {
            return mode;
        }
    }
    FailInvalid(fmt::format("its nearest_mode is \"{}\"", name));
}

// The size that a scale gives: exact for whole numbers, so that symbols stay.
Expr ScaledSize(Builder& b, const Expr& size, double scale) {
    if (!(scale > 0) || scale > INT32_MAX) {
        FailInvalid(fmt::format("a scale is {}", scale));
    }
    if (scale == std::floor(scale)) {
        return size * static_cast<int64_t>(scale);
    }
    // In f32, as ONNX's shape inference: a scale of 0.7 is a little less, and ten times that is 7.
    const float n = static_cast<float>(b.sizes().Fix(size));
    const double scaled = std::floor(n * static_cast<float>(scale));
    if (scaled > static_cast<double>(graph::kMaxElements)) {
        FailInvalid(fmt::format("a size of {} is wanted", scaled));
    }
    return static_cast<int64_t>(scaled);
}

void SetScales(Node& node,
               Val x,
               const std::vector<double>& scales,
               std::vector<ResizeAxis>& axes) {
    if (scales.size() != axes.size()) {
        FailInvalid(fmt::format("it has {} scales for {} axes", scales.size(), axes.size()));
    }
    for (size_t i = 0; i < axes.size(); ++i) {
        axes[i].scale = scales[i];
        axes[i].size = ScaledSize(node.builder(), x.dim(axes[i].axis), scales[i]);
    }
}

void SetSizes(Node& node, Val x, const std::vector<Expr>& sizes, std::vector<ResizeAxis>& axes) {
    graph::SizeFacts& facts = node.builder().sizes();
    if (sizes.size() != axes.size()) {
        FailInvalid(fmt::format("it has {} sizes for {} axes", sizes.size(), axes.size()));
    }
    double least = INFINITY, greatest = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
        const Expr n = x.dim(axes[i].axis);
        axes[i].size = sizes[i];
        axes[i].scale = n == sizes[i] ? 1
                                      : static_cast<double>(facts.Fix(sizes[i])) /
                                            static_cast<double>(facts.Fix(n));
        least = std::min(least, axes[i].scale);
        greatest = std::max(greatest, axes[i].scale);
    }
    const std::string policy = node.Text("keep_aspect_ratio_policy", "stretch");
    if (policy == "stretch") {
        return;
    }
    if (policy != "not_larger" && policy != "not_smaller") {
        FailInvalid(fmt::format("its keep_aspect_ratio_policy is \"{}\"", policy));
    }
    const double scale = policy == "not_larger" ? least : greatest;
    for (ResizeAxis& axis : axes) {
        const double n = static_cast<double>(facts.Fix(x.dim(axis.axis)));
        axis.scale = scale;
        const double size = std::floor(scale * n + 0.5);
        if (!(size <= static_cast<double>(graph::kMaxElements))) {
            FailInvalid(fmt::format("a size of {} is wanted", size));
        }
        axis.size = static_cast<int64_t>(size);
    }
}

// Places were rounded up along axes that shrink, and down along others.
Val ResizeOfVersion10(Val x, std::span<const ResizeAxis> axes, ResizeOptions options) {
    std::vector<ResizeAxis> shrinking, growing;
    for (const ResizeAxis& axis : axes) {
        (axis.scale < 1 && options.mode == ResizeMode::kNearest ? shrinking : growing)
            .push_back(axis);
    }
    if (!shrinking.empty()) {
        ResizeOptions up = options;
        up.nearest = NearestMode::kCeil;
        x = graph::Resize(x, shrinking, up);
    }
    return graph::Resize(x, growing, options);
}

void ImportResize(Node& node) {
    const Val x = node.In(0);
    ResizeOptions options;
    options.mode = ReadMode(node, "nearest");
    options.places_in_f32 = true;
    std::vector<ResizeAxis> axes;
    std::vector<int64_t> given = node.Ints("axes");
    if (given.empty()) {
        for (int64_t i = 0; i < x.rank(); ++i) {
            given.push_back(i);
        }
    }
    for (const int64_t axis : given) {
        axes.push_back({Builder::Axis(axis, x.rank()), 1, x.dim(axis), 0, 1});
    }
    if (node.version() < 11) {
        options.coordinates = Coordinates::kAsymmetric;
        options.nearest = NearestMode::kFloor;
        SetScales(node, x, node.Numbers(1, "the scales"), axes);
        node.Out(ResizeOfVersion10(x, axes, options));
        return;
    }
    options.coordinates = ReadCoordinates(node);
    options.nearest = ReadNearest(node);
    options.cubic_a = node.Float("cubic_coeff_a", -0.75);
    options.exclude_outside = node.Int("exclude_outside", 0) != 0;
    options.antialias = node.Int("antialias", 0) != 0;
    options.extrapolation = node.Float("extrapolation_value", 0);
    const bool has_scales = node.Has(2) && !(node.In(2).shape() == Shape{0});
    if (has_scales) {
        SetScales(node, x, node.Numbers(2, "the scales"), axes);
    } else if (node.Has(3)) {
        SetSizes(node, x, node.Sizes(3, "the sizes"), axes);
    } else {
        FailInvalid("it has neither scales nor sizes");
    }
    if (options.coordinates == Coordinates::kCropAndResize) {
        const std::vector<double> roi = node.Numbers(1, "the region");
        if (roi.size() != 2 * axes.size()) {
            FailInvalid(
                fmt::format("the region has {} numbers for {} axes", roi.size(), axes.size()));
        }
        for (size_t i = 0; i < axes.size(); ++i) {
            axes[i].begin = roi[i];
            axes[i].end = roi[i + axes.size()];
        }
    }
    node.Out(graph::Resize(x, axes, options));
}

void ImportUpsample(Node& node) {
    const Val x = node.In(0);
    ResizeOptions options;
    options.mode = ReadMode(node, "nearest");
    options.places_in_f32 = true;
    options.coordinates = Coordinates::kAsymmetric;
    options.nearest = NearestMode::kFloor;
    std::vector<ResizeAxis> axes;
    for (int64_t i = 0; i < x.rank(); ++i) {
        axes.push_back({i, 1, x.dim(i), 0, 1});
    }
    SetScales(node, x, node.version() >= 9 ? node.Numbers(1, "the scales") : node.Floats("scales"),
              axes);
    node.Out(graph::Resize(x, axes, options));
}

void ImportGridSample(Node& node) {
    const std::string padding = node.Text("padding_mode", "zeros");
    if (padding != "zeros" && padding != "border" && padding != "reflection") {
        FailInvalid(fmt::format("its padding_mode is \"{}\"", padding));
    }
    node.Out(graph::GridSample(node.In(0), node.In(1), ReadMode(node, "linear"),
                               padding == "zeros"    ? graph::SamplePadding::kZeros
                               : padding == "border" ? graph::SamplePadding::kBorder
                                                     : graph::SamplePadding::kReflection,
                               node.Int("align_corners", 0) != 0));
}

void ImportAffineGrid(Node& node) {
    const std::vector<Expr> size = node.Sizes(1, "the size");
    if (size.size() < 3 || node.In(0).rank() != 3) {
        FailInvalid(fmt::format("the size has {} dimensions for the maps {}", size.size(),
                                node.In(0).shape().ToString()));
    }
    node.Out(graph::AffineGrid(node.In(0), std::span(size).subspan(2),
                               node.Int("align_corners", 0) != 0));
}

void ImportRoiAlign(Node& node) {
    graph::RoiOptions options;
    options.height = node.Int("output_height", 1);
    options.width = node.Int("output_width", 1);
    options.samples = node.Int("sampling_ratio", 0);
    options.scale = node.Float("spatial_scale", 1);
    options.max = node.Text("mode", "avg") == "max";
    options.half_pixel = node.version() >= 16 &&
                         node.Text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
    const Val x = node.In(0), boxes = node.In(1), images = node.In(2);
    if (options.samples != 0) {
        node.Out(graph::RoiAlign(x, boxes, images, options));
        return;
    }
    // How many samples a bin has depends on its box.
    if (x.rank() != 4 || boxes.rank() != 2 || options.height < 1 || options.width < 1) {
        FailInvalid(fmt::format("the input is {}, the boxes are {} and the result is of {} by {}",
                                x.shape().ToString(), boxes.shape().ToString(), options.height,
                                options.width));
    }
    const Shape shape{boxes.dim(0), x.dim(1), options.height, options.width};
    const Val y = node.builder().HostCall(
        "roi_align",
        {{"half_pixel", int64_t{options.half_pixel}},
         {"height", options.height},
         {"max", int64_t{options.max}},
         {"scale", options.scale},
         {"width", options.width}},
        {graph::Cast(x, ElementType::kF32), graph::Cast(boxes, ElementType::kF32),
         graph::Cast(images, ElementType::kI64)},
        {{ElementType::kF32, shape}})[0];
    node.Out(graph::Cast(y, x.element()));
}

// Which elements a bin has depends on its box.
void ImportMaxRoiPool(Node& node) {
    const Val x = node.In(0), boxes = node.In(1);
    const std::vector<int64_t> bins = node.Ints("pooled_shape");
    if (x.rank() != 4 || boxes.rank() != 2 || bins.size() != 2 || bins[0] < 1 || bins[1] < 1) {
        FailInvalid(
            fmt::format("the input is {}, the boxes are {} and its pooled_shape has {} "
                        "sizes",
                        x.shape().ToString(), boxes.shape().ToString(), bins.size()));
    }
    const Val y = node.builder().HostCall(
        "roi_max_pool",
        {{"height", bins[0]}, {"scale", node.Float("spatial_scale", 1)}, {"width", bins[1]}},
        {graph::Cast(x, ElementType::kF32), graph::Cast(boxes, ElementType::kF32)},
        {{ElementType::kF32, Shape{boxes.dim(0), x.dim(1), bins[0], bins[1]}}})[0];
    node.Out(graph::Cast(y, x.element()));
}

constexpr OperatorEntry kOperators[] = {
    {"AffineGrid", 2, ImportAffineGrid}, {"GridSample", 2, ImportGridSample},
    {"MaxRoiPool", 2, ImportMaxRoiPool}, {"Resize", 1, ImportResize},
    {"RoiAlign", 3, ImportRoiAlign},     {"Upsample", 1, ImportUpsample},
};

}  // namespace

std::span<const OperatorEntry> ResampleOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend

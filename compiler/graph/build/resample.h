// Resizing, and sampling at given places.
#pragma once

#include "compiler/graph/build/builder.h"

namespace fornax::graph {

enum class ResizeMode : uint8_t { kNearest, kLinear, kCubic };
enum class NearestMode : uint8_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };
// How a place in the result becomes a place in the input.
enum class Coordinates : uint8_t {
    kHalfPixel,
    kHalfPixelSymmetric,
    kPytorchHalfPixel,
    kAlignCorners,
    kAsymmetric,
    kCropAndResize,
};

struct ResizeOptions {
    ResizeMode mode = ResizeMode::kNearest;
    NearestMode nearest = NearestMode::kRoundPreferFloor;
    Coordinates coordinates = Coordinates::kHalfPixel;
    double cubic_a = -0.75;
    bool exclude_outside = false;
    bool antialias = false;
    double extrapolation = 0;
    // Nearest places are computed in f32, whose rounding decides between two that are as near.
    bool places_in_f32 = false;
};

struct ResizeAxis {
    int64_t axis = 0;
    double scale = 1;  // the result's size over the input's, before rounding
    Expr size;         // of the result
    // The part of the axis that kCropAndResize takes.
    double begin = 0;
    double end = 1;
};

// A composite. Sizes of axes that are interpolated become fixed, but for nearest by whole numbers.
Val Resize(Val x, std::span<const ResizeAxis> axes, const ResizeOptions& options);

enum class SamplePadding : uint8_t { kZeros, kBorder, kReflection };
// x [batch, channels, spatial...] at grid [batch, places..., rank], whose coordinates are -1..1,
// the last axis' first.
Val GridSample(Val x, Val grid, ResizeMode mode, SamplePadding padding, bool align_corners);
// The grid [batch, places..., rank] of an affine map theta [batch, rank, rank + 1].
Val AffineGrid(Val theta, std::span<const Expr> places, bool align_corners);

struct RoiOptions {
    int64_t height = 1;
    int64_t width = 1;
    int64_t samples = 1;  // per bin and axis
    double scale = 1;
    bool half_pixel = true;
    bool max = false;
};
// x [batch, channels, height, width] in boxes [boxes, 4], each of the image batch_indices[box].
Val RoiAlign(Val x, Val boxes, Val batch_indices, const RoiOptions& options);

}  // namespace fornax::graph

// Convolutions and pooling over [batch, channels, spatial...], all composites.
#pragma once

#include "compiler/graph/build/builder.h"

namespace fornax::graph {

// One entry per spatial dimension.
struct SpatialWindow {
    std::vector<Expr> size;
    std::vector<int64_t> strides;
    std::vector<int64_t> dilations;
    std::vector<Expr> low;  // padding before and behind
    std::vector<Expr> high;

    size_t rank() const { return strides.size(); }
    // Fails unless all lists have `rank` entries and are positive where they have to be.
    void Check(size_t rank) const;
};

// How padding that is to be chosen is chosen.
enum class AutoPad : uint8_t { kNone, kSameUpper, kSameLower, kValid };
// Sets low and high so that there are ceil(n / stride) windows, or none.
void ApplyAutoPad(SpatialWindow& window, AutoPad mode, const Shape& input);

// w is [out channels, channels / groups, spatial...], bias [out channels] or nothing. Products are
// summed in `accumulate`, which is the result's type.
Val Convolve(Val x,
             Val w,
             Val bias,
             const SpatialWindow& window,
             int64_t groups,
             ElementType accumulate);
// i32 convolutions of integers less their zero points, which may be nothing: x_zero of one element,
// w_zero of one or one an output channel.
Val ConvolveIntegers(Val x,
                     Val x_zero,
                     Val w,
                     Val w_zero,
                     const SpatialWindow& window,
                     int64_t groups);
// w is [channels, out channels / groups, spatial...]; low and high are cut from the result.
// `extra` rows are added behind each axis before that.
Val ConvolveTransposed(Val x,
                       Val w,
                       Val bias,
                       const SpatialWindow& window,
                       std::span<const Expr> extra,
                       int64_t groups);
// offset is [batch, offset groups * spatial window * rank, output...]; mask may be nothing.
Val DeformableConvolve(Val x,
                       Val w,
                       Val offset,
                       Val bias,
                       Val mask,
                       const SpatialWindow& window,
                       int64_t groups,
                       int64_t offset_groups);

// With ceil_mode, windows that begin in the input or low padding count, though they end behind.
// Windows are extended as far with what changes nothing.
SpatialWindow CeilWindows(SpatialWindow window, const Shape& input, std::vector<Expr>& extra);

struct MaxPoolResult {
    Val values;
    Val positions;  // i64: in the whole input in row-major order
};
// extra: elements behind high that windows may reach (CeilWindows).
MaxPoolResult MaxPool(Val x,
                      const SpatialWindow& window,
                      std::span<const Expr> extra,
                      bool with_positions,
                      bool column_major);
// Padding counts in the mean if `count_padding`; extra never does.
Val AveragePool(Val x,
                const SpatialWindow& window,
                std::span<const Expr> extra,
                bool count_padding);
Val LpPool(Val x, const SpatialWindow& window, std::span<const Expr> extra, int64_t p);
// Over all spatial dimensions, which become 1.
Val GlobalAveragePool(Val x);
Val GlobalMaxPool(Val x);
Val GlobalLpPool(Val x, int64_t p);
// The inverse of MaxPool: values at positions in a tensor of `shape`, else 0.
Val MaxUnpool(Val values, Val positions, const Shape& shape);
// Columns [batch, channels * window, windows] summed into an image [batch, channels, image...].
Val ColumnsToImage(Val columns, const SpatialWindow& window, std::span<const Expr> image);

}  // namespace fornax::graph

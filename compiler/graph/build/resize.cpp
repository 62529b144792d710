// Resizing: for each axis the taps of each place of the result, computed here, and a sum of gathers
// or a product with the matrix of their weights.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include <fmt/format.h>

#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/index.h"
#include "compiler/graph/build/product.h"
#include "compiler/graph/build/resample.h"

namespace fornax::graph {
namespace {

// The taps of one axis: for each place of the result `taps` indices and weights.
struct Taps {
    int64_t taps = 1;
    std::vector<int64_t> indices;  // within the operand
    std::vector<float> weights;
    std::vector<int64_t> first;  // of each place, not limited to the operand
    std::vector<bool> outside;   // takes the extrapolation value
};

template <typename T>
T Source(int64_t place, const ResizeAxis& axis, int64_t n, int64_t m, Coordinates coordinates) {
    const T x = static_cast<T>(place), size = static_cast<T>(n), half = static_cast<T>(0.5);
    const T scale = static_cast<T>(axis.scale), wanted = scale * size;
    switch (coordinates) {
        case Coordinates::kAlignCorners:
            return wanted == 1 ? 0 : x * (size - 1) / (wanted - 1);
        case Coordinates::kAsymmetric:
            return x / scale;
        case Coordinates::kCropAndResize: {
            const T begin = static_cast<T>(axis.begin), end = static_cast<T>(axis.end);
            const T part = (end - begin) * (size - 1);
            return begin * (size - 1) + (wanted == 1 ? part / 2 : x * part / (wanted - 1));
        }
        case Coordinates::kPytorchHalfPixel:
            return wanted == 1 ? -half : (x + half) / scale - half;
        case Coordinates::kHalfPixelSymmetric:
            return size / 2 * (1 - static_cast<T>(m) / wanted) + (x + half) / scale - half;
        case Coordinates::kHalfPixel:
            break;
    }
    return (x + half) / scale - half;
}

int64_t Nearest(double x, NearestMode mode) {
    switch (mode) {
        case NearestMode::kRoundPreferFloor:
            return static_cast<int64_t>(std::ceil(x - 0.5));
        case NearestMode::kRoundPreferCeil:
            return static_cast<int64_t>(std::floor(x + 0.5));
        case NearestMode::kFloor:
            return static_cast<int64_t>(std::floor(x));
        case NearestMode::kCeil:
            break;
    }
    return static_cast<int64_t>(std::ceil(x));
}

// The kernel's weight at a distance from the source.
double Weight(double distance, const ResizeOptions& options) {
    const double d = std::abs(distance), a = options.cubic_a;
    if (options.mode == ResizeMode::kLinear) {
        return std::max(1 - d, 0.0);
    }
    if (d <= 1) {
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    }
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

Taps TapsOf(const ResizeAxis& axis, int64_t n, int64_t m, const ResizeOptions& options) {
    Taps result;
    const double reach = options.mode == ResizeMode::kLinear ? 1 : 2;
    // Antialiasing spreads the kernel when the result is smaller.
    const double spread = options.antialias ? std::min(axis.scale, 1.0) : 1;
    constexpr int64_t kMaxTableElements = int64_t{1} << 24;
    if (!(reach / spread <= static_cast<double>(kMaxTableElements))) {
        FailInvalid(fmt::format("a scale is {}", axis.scale));
    }
    if (options.mode != ResizeMode::kNearest) {
        result.taps = 2 - 2 * (static_cast<int64_t>(std::floor(-reach / spread)) + 1);
    }
    if (m < 0 || result.taps > kMaxTableElements / std::max<int64_t>(m, 1)) {
        FailUnsupported(fmt::format("{} elements of {} taps each exceed the limit of {}", m,
                                    result.taps, kMaxTableElements));
    }
    for (int64_t place = 0; place < m; ++place) {
        const bool narrow = options.places_in_f32 && options.mode == ResizeMode::kNearest;
        const double x = narrow ? Source<float>(place, axis, n, m, options.coordinates)
                                : Source<double>(place, axis, n, m, options.coordinates);
        if (!(std::abs(x) <= static_cast<double>(kMaxElements))) {
            FailInvalid(fmt::format("element {} is that at {} of the operand", place, x));
        }
        result.outside.push_back(options.coordinates == Coordinates::kCropAndResize &&
                                 (x < 0 || x > static_cast<double>(n - 1)));
        if (options.mode == ResizeMode::kNearest) {
            result.first.push_back(Nearest(x, options.nearest));
            result.indices.push_back(std::clamp<int64_t>(result.first.back(), 0, n - 1));
            result.weights.push_back(1);
            continue;
        }
        const int64_t first = static_cast<int64_t>(std::ceil(x)) - result.taps / 2;
        result.first.push_back(first);
        std::vector<double> weights;
        double sum = 0;
        for (int64_t tap = 0; tap < result.taps; ++tap) {
            const int64_t index = first + tap;
            double weight = Weight((static_cast<double>(index) - x) * spread, options);
            if (options.exclude_outside && (index < 0 || index >= n)) {
                weight = 0;
            }
            weights.push_back(weight);
            sum += weight;
            result.indices.push_back(std::clamp<int64_t>(index, 0, n - 1));
        }
        const bool normal = options.exclude_outside || options.antialias;
        for (const double weight : weights) {
            result.weights.push_back(
                static_cast<float>(normal && sum != 0 ? weight / sum : weight));
        }
    }
    return result;
}

// A vector along one axis of a tensor.
Val Along(Val vector, int64_t axis, int64_t rank) {
    std::vector<Expr> dims(static_cast<size_t>(rank - axis), Expr(1));
    dims[0] = vector.dim(0);
    return Reshape(vector, Shape(std::move(dims)));
}

// Nearest by a whole number: each element repeated.
Val Repeat(Val x, int64_t axis, int64_t times) {
    Shape shape = x.shape();
    const size_t place = static_cast<size_t>(axis);
    std::vector<Expr> repeated(shape.dims().begin(), shape.dims().end());
    repeated.insert(repeated.begin() + axis + 1, Expr(times));
    shape[place] = shape[place] * times;
    return Reshape(BroadcastTo(Unsqueeze(x, axis + 1), Shape(std::move(repeated))), shape);
}

// A rule for each place's first tap: floor((place * step + offset) / times) + base.
struct Spacing {
    int64_t step = 1, times = 1, offset = 0, base = 0;
    int64_t At(int64_t place) const { return (place * step + offset) / times + base; }
};

bool Follow(const std::vector<int64_t>& first, const Spacing& spacing) {
    for (size_t place = 0; place < first.size(); ++place) {
        if (spacing.offset < 0 || first[place] != spacing.At(static_cast<int64_t>(place))) {
            return false;
        }
    }
    return true;
}

// `step` elements for each `times` places, which are few.
std::optional<Spacing> RatioOf(const std::vector<int64_t>& first) {
    constexpr int64_t kMostTimes = 8;
    const auto size = static_cast<int64_t>(first.size());
    for (int64_t times = 2; times <= kMostTimes && times < size; ++times) {
        const int64_t step = first[static_cast<size_t>(times)] - first[0];
        for (int64_t offset = 0; offset < times; ++offset) {
            const Spacing spacing{step, times, offset, first[0]};
            if (step > 0 && Follow(first, spacing)) {
                return spacing;
            }
        }
    }
    return std::nullopt;
}

// Spacing where step or times is 1.
std::optional<Spacing> SpacingOf(const std::vector<int64_t>& first) {
    const auto changes = [&](size_t from) {
        while (from < first.size() && first[from] == first[from - 1]) {
            ++from;
        }
        return from;
    };
    if (first.size() < 2) {
        return std::nullopt;
    }
    Spacing spacing;
    spacing.base = first[0];
    if (first[1] > first[0] + 1) {
        spacing.step = first[1] - first[0];
    } else {
        const size_t once = changes(1), twice = changes(once + 1);
        if (twice >= first.size()) {
            return std::nullopt;
        }
        spacing.times = static_cast<int64_t>(twice - once);
        spacing.offset = spacing.times - static_cast<int64_t>(once);
    }
    return Follow(first, spacing) ? std::optional(spacing) : std::nullopt;
}

// Nearest places that are evenly spaced, as a slice of the operand with each element repeated.
// Nothing if they are not so.
Val TakeEvenly(Val x, int64_t axis, const std::vector<int64_t>& places) {
    std::optional<Spacing> spacing = SpacingOf(places);
    spacing = spacing ? spacing : RatioOf(places);
    if (!spacing) {
        return {};
    }
    const Val repeated = spacing->times == 1 ? x : Repeat(x, axis, spacing->times);
    return SliceAxis(repeated, axis, spacing->base * spacing->times + spacing->offset,
                     static_cast<int64_t>(places.size()), spacing->step);
}

// A number for each place along the axis, or one for all of them.
Val Weights(Val x, int64_t axis, const std::vector<float>& weights) {
    if (!weights.empty() &&
        std::ranges::adjacent_find(weights, std::not_equal_to()) == weights.end()) {
        return Like(x, weights[0]);
    }
    const Val vector =
        x.builder().Constant(Tensor::FromFloats({static_cast<int64_t>(weights.size())}, weights));
    return Along(Cast(vector, x.element()), axis, x.rank());
}

// Taps that are evenly spaced are slices of the operand with each element repeated, which kernels
// read without indices from memory. Taps outside of the operand read zeros, and what they weigh is
// the outermost element's. Nothing if the taps are not so.
Val InterpolateEvenly(Val x, int64_t axis, const Taps& taps, int64_t n, int64_t m) {
    std::optional<Spacing> spacing = SpacingOf(taps.first);
    if (!spacing) {
        return {};
    }
    // Along rows vectors begin where an element's repetitions do, so that their loads are known
    // patterns: a place has one tap more then, and one that it does not take.
    const bool aligned = axis == x.rank() - 1 && spacing->offset != 0;
    const int64_t count = taps.taps + (aligned ? 1 : 0);
    spacing->offset = aligned ? 0 : spacing->offset;
    std::vector<std::vector<float>> weights(static_cast<size_t>(count),
                                            std::vector<float>(static_cast<size_t>(m), 0));
    for (int64_t place = 0; place < m; ++place) {
        for (int64_t tap = 0; tap < taps.taps; ++tap) {
            const size_t at = static_cast<size_t>(place * taps.taps + tap);
            const int64_t nearest = taps.indices[at] - spacing->At(place);
            if (nearest < 0 || nearest >= count) {
                return {};
            }
            weights[static_cast<size_t>(nearest)][static_cast<size_t>(place)] += taps.weights[at];
        }
    }
    const int64_t low = std::max<int64_t>(0, -spacing->At(0));
    const int64_t high = std::max<int64_t>(0, spacing->At(m - 1) + count - n);
    std::vector<Expr> lows(static_cast<size_t>(x.rank()), Expr(0)), highs = lows;
    lows[static_cast<size_t>(axis)] = low;
    highs[static_cast<size_t>(axis)] = high;
    const Val padded = Pad(x, 0, lows, highs);
    const Val repeated = spacing->times == 1 ? padded : Repeat(padded, axis, spacing->times);
    Val sum;
    for (int64_t tap = 0; tap < count; ++tap) {
        const int64_t begin = (spacing->base + tap + low) * spacing->times + spacing->offset;
        const Val weight = Weights(x, axis, weights[static_cast<size_t>(tap)]);
        const Val element = SliceAxis(repeated, axis, begin, m, spacing->step);
        Val value = element * weight;
        if (aligned) {
            // A tap that is not taken may be infinite.
            value = Where(map::Equal(weight, Like(weight, 0)), Like(value, 0), value);
        }
        sum = sum ? sum + value : value;
    }
    return sum;
}

Val Interpolate(Val x, const ResizeAxis& axis, const Taps& taps, int64_t n, int64_t m) {
    Builder& b = x.builder();
    constexpr int64_t kMaxGathers = 4;
    if (taps.taps <= kMaxGathers) {
        if (const Val even = taps.taps > 1 ? InterpolateEvenly(x, axis.axis, taps, n, m)
                                           : TakeEvenly(x, axis.axis, taps.indices)) {
            return even;
        }
        Val sum;
        for (int64_t tap = 0; tap < taps.taps; ++tap) {
            std::vector<int64_t> indices;
            std::vector<float> weights;
            for (int64_t place = 0; place < m; ++place) {
                indices.push_back(taps.indices[static_cast<size_t>(place * taps.taps + tap)]);
                weights.push_back(taps.weights[static_cast<size_t>(place * taps.taps + tap)]);
            }
            Val value = Take(x, b.Integers(indices), axis.axis);
            value = taps.taps > 1 ? value * Weights(x, axis.axis, weights) : value;
            sum = sum ? sum + value : value;
        }
        return sum;
    }
    std::vector<float> matrix(static_cast<size_t>(m * n), 0);
    for (int64_t place = 0; place < m; ++place) {
        for (int64_t tap = 0; tap < taps.taps; ++tap) {
            const size_t at = static_cast<size_t>(place * taps.taps + tap);
            matrix[static_cast<size_t>(place * n + taps.indices[at])] += taps.weights[at];
        }
    }
    const Val weights = Cast(b.Constant(Tensor::FromFloats({m, n}, matrix)), x.element());
    return MoveAxis(MatMul(MoveAxis(x, axis.axis, -1), TransposeMatrix(weights)), -1, axis.axis);
}

bool IsRepeat(const ResizeAxis& axis, const ResizeOptions& options, const Expr& n) {
    const bool whole = axis.scale == std::floor(axis.scale) && axis.scale >= 1 &&
                       axis.size == n * static_cast<int64_t>(axis.scale);
    const bool floors =
        options.coordinates == Coordinates::kAsymmetric && options.nearest == NearestMode::kFloor;
    const bool centres = options.coordinates == Coordinates::kHalfPixel &&
                         (options.nearest == NearestMode::kRoundPreferFloor ||
                          options.nearest == NearestMode::kRoundPreferCeil);
    return options.mode == ResizeMode::kNearest && whole && (floors || centres);
}

// The axes counted from 0, in the order that takes the fewest elements from places that come from
// tables: first those that shrink, then those that grow, rows first.
std::vector<ResizeAxis> InOrder(std::span<const ResizeAxis> axes, int64_t rank) {
    std::vector<ResizeAxis> ordered(axes.begin(), axes.end());
    for (ResizeAxis& axis : ordered) {
        axis.axis = Builder::Axis(axis.axis, rank);
    }
    std::ranges::sort(ordered, [](const ResizeAxis& a, const ResizeAxis& b) {
        const bool a_grows = a.scale >= 1, b_grows = b.scale >= 1;
        if (a_grows != b_grows) {
            return b_grows;
        }
        return a_grows ? a.axis > b.axis : a.axis < b.axis;
    });
    return ordered;
}

}  // namespace

Val Resize(Val x, std::span<const ResizeAxis> axes, const ResizeOptions& options) {
    constexpr const char* kModes[] = {"nearest", "linear", "cubic"};
    return x.builder().Composite(
        "resize", {{"mode", std::string(kModes[static_cast<size_t>(options.mode)])}}, {x},
        [&](Builder& b, Vals in) -> Vals {
            const bool moves = options.mode == ResizeMode::kNearest;
            Val v = moves ? in[0] : Cast(in[0], ComputeType(in[0].element()));
            Val outside;
            for (const ResizeAxis& axis : InOrder(axes, v.rank())) {
                const Expr size = v.dim(axis.axis);
                const bool crop = options.coordinates == Coordinates::kCropAndResize;
                if (axis.scale == 1 && axis.size == size && !crop) {
                    continue;
                }
                if (IsRepeat(axis, options, size)) {
                    v = Repeat(v, axis.axis, static_cast<int64_t>(axis.scale));
                    continue;
                }
                const int64_t n = b.sizes().Fix(size), m = b.sizes().Fix(axis.size);
                if (n == 0 || !(axis.scale > 0)) {
                    FailInvalid(fmt::format("{} elements are resized by {}", n, axis.scale));
                }
                const Taps taps = TapsOf(axis, n, m, options);
                v = Interpolate(v, axis, taps, n, m);
                if (std::ranges::find(taps.outside, true) != taps.outside.end()) {
                    std::vector<Expr> flags(taps.outside.begin(), taps.outside.end());
                    const Val here = Along(b.FromContents(ElementType::kBool, Shape{m}, flags),
                                           axis.axis, v.rank());
                    outside = outside ? Or(outside, here) : here;
                }
            }
            if (outside) {
                v = Where(outside, Like(v, options.extrapolation), v);
            }
            if (!moves && IsInteger(in[0].element())) {
                v = map::Round(v);
            }
            return {Cast(v, in[0].element())};
        })[0];
}

}  // namespace fornax::graph

// Pooling: padding, windows and a reduction.
#include <fmt/format.h>

#include <limits>
#include <optional>

#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/convolve.h"

namespace fornax::graph {
namespace {

std::vector<int64_t> LastAxes(int64_t rank, size_t count) {
    std::vector<int64_t> axes;
    for (int64_t axis = rank - static_cast<int64_t>(count); axis < rank; ++axis) {
        axes.push_back(axis);
    }
    return axes;
}

// [batch, channels, windows..., window...] of an input that is padded with `with`.
Val Windows(Val x, Val with, const SpatialWindow& window, std::span<const Expr> extra) {
    std::vector<Expr> low = {0, 0}, high = {0, 0};
    for (size_t i = 0; i < window.rank(); ++i) {
        low.push_back(window.low[i]);
        high.push_back(window.high[i] + (extra.empty() ? Expr(0) : extra[i]));
    }
    x = Pad(x, with, low, high);
    for (size_t i = 0; i < window.rank(); ++i) {
        x = Window(x, static_cast<int64_t>(i) + 2, window.size[i], window.strides[i],
                   window.dilations[i]);
    }
    return x;
}

// Whether a maximum along one axis after the other, which is a kernel each, takes less than all at
// once: what is written between costs as much as comparing a few elements.
bool IsLessByAxis(const SpatialWindow& window) {
    constexpr int64_t kPriceOfMemory = 6;
    int64_t all = 1, by_axis = 0;
    // The last axis is first, so the others' strides have not thinned out what it computes.
    for (size_t i = window.rank(); i-- > 0;) {
        const std::optional<int64_t> size = window.size[i].constant();
        constexpr int64_t kMostSize = 1 << 10;
        if (!size || *size > kMostSize || all > kMostSize) {
            return false;
        }
        all *= *size;
        int64_t computed = *size + (i > 0 ? kPriceOfMemory : 0);
        for (size_t outer = 0; outer < i; ++outer) {
            computed *= window.strides[outer];
        }
        by_axis += computed;
    }
    return by_axis < all;
}

void CheckPool(Val x, const SpatialWindow& window) {
    window.Check(window.rank());
    if (x.rank() != static_cast<int64_t>(window.rank()) + 2) {
        FailInvalid(
            fmt::format("the input {} is not [batch, channels, ...] with {} spatial "
                        "dimensions",
                        x.shape().ToString(), window.rank()));
    }
}

Val Lowest(Val x) {
    if (!Accepts(Combine::kMax, x.element())) {
        FailInvalid(fmt::format("there is no greatest element of type {}", Name(x.element())));
    }
    uint8_t* data = nullptr;
    Tensor tensor = Tensor::Zeros(x.element(), {}, &data);
    WriteElement(x.element(), NeutralElement(Combine::kMax, x.element()), data);
    return x.builder().Constant(std::move(tensor));
}

// The greatest elements of windows along one axis.
Val MaximumAlong(Val x, const SpatialWindow& window, std::span<const Expr> extra, size_t i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    std::vector<Expr> low(static_cast<size_t>(x.rank()), Expr(0)), high = low;
    low[i + 2] = window.low[i];
    high[i + 2] = window.high[i] + (extra.empty() ? Expr(0) : extra[i]);
    x = Window(Pad(x, Lowest(x), low, high), axis, window.size[i], window.strides[i],
               window.dilations[i]);
    return Reduce(Combine::kMax, x, {-1}, false);
}

Attributes AttributesOf(const SizeFacts& sizes, const SpatialWindow& window) {
    const auto hints = [&](std::span<const Expr> values) {
        std::vector<int64_t> numbers;
        for (const Expr& value : values) {
            numbers.push_back(sizes.Hint(value));
        }
        return numbers;
    };
    return {{"size", hints(window.size)},
            {"strides", window.strides},
            {"dilations", window.dilations},
            {"low", hints(window.low)},
            {"high", hints(window.high)}};
}

// How many elements of each window along one axis are in the input, [windows].
Val CountAlong(Builder& b,
               const SpatialWindow& window,
               size_t i,
               const Expr& n,
               const Expr& extra,
               bool count_padding,
               ElementType element) {
    Val ones = b.Full(element, Shape{n}, 1);
    ones = Pad(ones, count_padding ? 1 : 0, {window.low[i]}, {window.high[i]});
    ones = Pad(ones, 0, {Expr(0)}, {extra});
    return Sum(Window(ones, 0, window.size[i], window.strides[i], window.dilations[i]), {1}, false);
}

std::vector<int64_t> SpatialAxes(Val x) {
    if (x.rank() < 3) {
        FailInvalid(fmt::format("the input {} has no spatial dimensions", x.shape().ToString()));
    }
    return LastAxes(x.rank(), static_cast<size_t>(x.rank() - 2));
}

}  // namespace

SpatialWindow CeilWindows(SpatialWindow window, const Shape& input, std::vector<Expr>& extra) {
    extra.clear();
    for (size_t i = 0; i < window.rank(); ++i) {
        const Expr& n = input[i + 2];
        const Expr padded = n + window.low[i] + window.high[i];
        const Expr covered = (window.size[i] - 1) * window.dilations[i] + 1;
        const Expr last = CeilDiv(padded - covered, window.strides[i]) * window.strides[i];
        // A window that would begin in the padding behind does not count.
        const Expr limit = n + window.low[i];
        const Expr start = FloorDiv(limit - 1, window.strides[i]) * window.strides[i];
        extra.push_back(Max(Min(last, start) + covered - padded, 0));
    }
    return window;
}

MaxPoolResult MaxPool(Val x,
                      const SpatialWindow& window,
                      std::span<const Expr> extra,
                      bool with_positions,
                      bool column_major) {
    CheckPool(x, window);
    Attributes attributes = AttributesOf(x.builder().sizes(), window);
    attributes["positions"] = int64_t{with_positions};
    const Vals results = x.builder().Composite(
        "max_pool", std::move(attributes), {x}, [&](Builder& b, Vals in) -> Vals {
            const size_t rank = window.rank();
            if (!with_positions && IsLessByAxis(window)) {
                Val values = in[0];
                for (size_t i = rank; i-- > 0;) {
                    values = MaximumAlong(values, window, extra, i);
                }
                return {values};
            }
            const Val windows = Windows(in[0], Lowest(in[0]), window, extra);
            const Val values =
                Reduce(Combine::kMax, windows, LastAxes(windows.rank(), rank), false);
            if (!with_positions) {
                return {values};
            }
            const Val flat = Flatten(windows, static_cast<int64_t>(rank) + 2, windows.rank());
            Val place = ArgReduce(Combine::kMax, flat, -1, false);
            const Shape shape = place.shape(), input = in[0].shape();
            // The place in the window from the last dimension to the first, then in the input.
            std::vector<Val> coordinates(rank);
            for (size_t i = rank; i-- > 0;) {
                const Val size = b.Size(window.size[i]);
                const Val inside = map::Mod(place, size);
                place = map::FloorDiv(place, size);
                coordinates[i] = b.Iota(ElementType::kI64, shape, static_cast<int64_t>(i) + 2) *
                                     static_cast<double>(window.strides[i]) +
                                 inside * static_cast<double>(window.dilations[i]) -
                                 b.Size(window.low[i]);
            }
            Val position = b.Iota(ElementType::kI64, shape, 0) * b.Size(input[1]) +
                           b.Iota(ElementType::kI64, shape, 1);
            Val spatial;
            Expr volume = 1;
            for (size_t n = 0; n < rank; ++n) {
                const size_t i = column_major ? rank - 1 - n : n;
                spatial =
                    spatial ? spatial * b.Size(input[i + 2]) + coordinates[i] : coordinates[i];
                volume *= input[i + 2];
            }
            position = position * b.Size(volume) + spatial;
            return {values, position};
        });
    return {results[0], with_positions ? results[1] : Val()};
}

Val AveragePool(Val x,
                const SpatialWindow& window,
                std::span<const Expr> extra,
                bool count_padding) {
    CheckPool(x, window);
    Attributes attributes = AttributesOf(x.builder().sizes(), window);
    attributes["count_padding"] = int64_t{count_padding};
    return x.builder().Composite(
        "average_pool", std::move(attributes), {x}, [&](Builder& b, Vals in) -> Vals {
            return {Widened(in[0], [&](Val v) {
                const Val windows = Windows(v, Like(v, 0), window, extra);
                const Val sum =
                    Reduce(Combine::kSum, windows, LastAxes(windows.rank(), window.rank()), false);
                Val count;
                for (size_t i = 0; i < window.rank(); ++i) {
                    Val along =
                        CountAlong(b, window, i, v.shape()[i + 2],
                                   extra.empty() ? Expr(0) : extra[i], count_padding, v.element());
                    std::vector<Expr> dims(window.rank(), Expr(1));
                    dims[i] = along.dim(0);
                    along = Reshape(along, Shape(std::move(dims)));
                    count = count ? count * along : along;
                }
                return sum / count;
            })};
        })[0];
}

Val LpPool(Val x, const SpatialWindow& window, std::span<const Expr> extra, int64_t p) {
    CheckPool(x, window);
    return Widened(x, [&](Val v) {
        const Val power = p == 1   ? map::Abs(v)
                          : p == 2 ? v * v
                                   : map::Pow(map::Abs(v), Like(v, static_cast<double>(p)));
        const Val windows = Windows(power, Like(v, 0), window, extra);
        const Val sum =
            Reduce(Combine::kSum, windows, LastAxes(windows.rank(), window.rank()), false);
        return p == 1   ? sum
               : p == 2 ? map::Sqrt(sum)
                        : map::Pow(sum, Like(sum, 1.0 / static_cast<double>(p)));
    });
}

Val GlobalAveragePool(Val x) {
    const std::vector<int64_t> axes = SpatialAxes(x);
    return Widened(x, [&](Val v) { return Mean(v, axes); });
}

Val GlobalMaxPool(Val x) {
    return Reduce(Combine::kMax, x, SpatialAxes(x), true);
}

Val GlobalLpPool(Val x, int64_t p) {
    const std::vector<int64_t> axes = SpatialAxes(x);
    return Widened(x, [&](Val v) {
        const Val exponent = Like(v, static_cast<double>(p));
        return map::Pow(Reduce(Combine::kSum, map::Pow(map::Abs(v), exponent), axes, true),
                        1.0 / exponent);
    });
}

Val MaxUnpool(Val values, Val positions, const Shape& shape) {
    Builder& b = values.builder();
    const Val zeros = b.Full(values.element(), Shape{shape.Volume()}, 0);
    const Shape flat{values.shape().Volume()};
    return Reshape(Scatter(zeros, Reshape(values, flat), {-1}, {Reshape(positions, flat)}), shape);
}

}  // namespace fornax::graph

// Sampling at given places: gathers of the neighbours with their weights.
#include <fmt/format.h>

#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/product.h"
#include "compiler/graph/build/resample.h"

namespace fornax::graph {
namespace {

// Back and forth between low and high.
Val Reflect(Val x, Val low, Val high) {
    const Val range = Max(high - low, 1e-6);
    const Val within = map::Mod(x - low, range * 2.0);
    return low + map::Min(within, range * 2.0 - within);
}

// One spatial axis of a sampling: where places are, and the neighbours' indices and weights.
struct SampleAxis {
    Val size;  // f32
    Val low, high;

    SampleAxis(Builder& b, const Expr& n, bool align_corners)
        : size(Cast(b.Size(n), ElementType::kF32)),
          low(b.Scalar(ElementType::kF32, align_corners ? 0 : -0.5)),
          high(align_corners ? size - 1.0 : size - 0.5) {}

    Val Place(Val grid, bool align_corners) const {
        return align_corners ? (grid + 1.0) * 0.5 * (size - 1.0)
                             : ((grid + 1.0) * size - 1.0) * 0.5;
    }
    Val Padded(Val place, SamplePadding padding) const {
        switch (padding) {
            case SamplePadding::kBorder:
                return map::Min(Max(place, 0), size - 1.0);
            case SamplePadding::kReflection:
                return Where(Or(map::Less(place, low), map::Less(high, place)),
                             Reflect(place, low, high), place);
            case SamplePadding::kZeros:
                break;
        }
        return place;
    }
};

// Catmull and Rom's weights of the four neighbours of a fraction.
std::vector<Val> CubicWeights(Val t) {
    const double a = -0.75;
    const auto far = [&](Val d) { return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a; };
    const auto near = [&](Val d) { return ((d * (a + 2)) - (a + 3)) * d * d + 1.0; };
    return {far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
}

}  // namespace

Val GridSample(Val x, Val grid, ResizeMode mode, SamplePadding padding, bool align_corners) {
    const int64_t rank = x.rank() - 2;
    if (rank < 1 || grid.rank() != x.rank() || !x.builder().sizes().Equal(grid.dim(-1), rank)) {
        FailInvalid(fmt::format("the grid {} does not fit the input {}", grid.shape().ToString(),
                                x.shape().ToString()));
    }
    constexpr const char* kModes[] = {"nearest", "linear", "cubic"};
    return x.builder().Composite(
        "grid_sample",
        {{"mode", std::string(kModes[static_cast<size_t>(mode)])},
         {"padding", static_cast<int64_t>(padding)},
         {"align_corners", int64_t{align_corners}}},
        {x, grid}, [&](Builder& b, Vals in) -> Vals {
            const Val places = Cast(in[1], ElementType::kF32);
            const Shape input = in[0].shape(), grid_shape = in[1].shape();
            std::vector<Expr> dims = {input[0], input[1]};
            dims.insert(dims.end(), grid_shape.dims().begin() + 1, grid_shape.dims().end() - 1);
            const Shape shape(std::move(dims));
            // For each axis the neighbours: index and weight.
            std::vector<std::vector<std::pair<Val, Val>>> axes;
            for (int64_t i = 0; i < rank; ++i) {
                const SampleAxis axis(b, input[static_cast<size_t>(i) + 2], align_corners);
                Val place = axis.Place(Select(places, -1, rank - 1 - i), align_corners);
                if (mode == ResizeMode::kNearest) {
                    place = map::Round(place);
                }
                place = axis.Padded(place, padding);
                std::vector<std::pair<Val, Val>>& taps = axes.emplace_back();
                const auto add = [&](Val index, Val weight) {
                    taps.emplace_back(
                        Unsqueeze(Cast(axis.Padded(index, padding), ElementType::kI64), 1),
                        weight ? Unsqueeze(weight, 1) : weight);
                };
                if (mode == ResizeMode::kNearest) {
                    add(map::Round(place), Val());
                    continue;
                }
                const Val base = map::Floor(place), t = place - base;
                if (mode == ResizeMode::kLinear) {
                    add(base, 1.0 - t);
                    add(base + 1.0, t);
                    continue;
                }
                const std::vector<Val> weights = CubicWeights(t);
                for (int64_t tap = 0; tap < 4; ++tap) {
                    add(base + static_cast<double>(tap - 1), weights[static_cast<size_t>(tap)]);
                }
            }
            std::vector<int64_t> sources = {0, 1};
            for (int64_t i = 0; i < rank; ++i) {
                sources.push_back(-1 - i);
            }
            const ElementType compute = ComputeType(in[0].element());
            size_t count = 1;
            for (const auto& taps : axes) {
                count *= taps.size();
            }
            Val sum;
            for (size_t n = 0; n < count; ++n) {
                Vals indices;
                Val weight;
                size_t rest = n;
                for (const auto& taps : axes) {
                    const auto& [index, part] = taps[rest % taps.size()];
                    rest /= taps.size();
                    indices.push_back(index);
                    weight = weight && part ? weight * part : part;
                }
                Val value = Gather(in[0], sources, indices, shape);
                if (weight) {
                    value = Cast(value, compute) * Cast(weight, compute);
                }
                sum = sum ? sum + value : value;
            }
            return {Cast(sum, in[0].element())};
        })[0];
}

Val AffineGrid(Val theta, std::span<const Expr> places, bool align_corners) {
    Builder& b = theta.builder();
    const int64_t rank = static_cast<int64_t>(places.size());
    std::vector<Expr> dims(places.begin(), places.end());
    const Shape shape(dims);
    // Coordinates in the order x, y, ..., then 1.
    Vals parts;
    for (int64_t i = rank; i-- > 0;) {
        const Val place = b.Iota(ElementType::kF32, shape, i);
        const Val size = Cast(b.Size(places[static_cast<size_t>(i)]), ElementType::kF32);
        parts.push_back(align_corners ? place * 2.0 / Max(size - 1.0, 1) - 1.0
                                      : (place * 2.0 + 1.0) / size - 1.0);
    }
    parts.push_back(b.Full(ElementType::kF32, shape, 1));
    const Val grid = Flatten(Stack(parts, rank), 0, rank);  // [places, rank + 1]
    const Val moved = Contract(Cast(theta, ElementType::kF32), grid, "bij,pj->bpi");
    dims.insert(dims.begin(), theta.dim(0));
    dims.emplace_back(rank);
    return Cast(Reshape(moved, Shape(std::move(dims))), theta.element());
}

Val RoiAlign(Val x, Val boxes, Val batch_indices, const RoiOptions& options) {
    Builder& b = x.builder();
    if (x.rank() != 4 || boxes.rank() != 2 || options.height < 1 || options.width < 1 ||
        options.samples < 1) {
        FailInvalid(fmt::format("the input is {} and the boxes are {}", x.shape().ToString(),
                                boxes.shape().ToString()));
    }
    const double shift = options.half_pixel ? 0.5 : 0;
    const Expr count = boxes.dim(0);
    // Everything is [boxes, bins of y, samples of y, bins of x, samples of x].
    const Shape grid{count, options.height, options.samples, options.width, options.samples};
    struct Neighbours {
        Val low, high, near_low, near_high, valid;
    };
    const auto along = [&](int64_t column, int64_t axis, int64_t bins, const Expr& n) {
        const auto edge = [&](int64_t at) {
            const Val e = Select(Cast(boxes, ElementType::kF32), 1, at) * options.scale - shift;
            return Reshape(e, Shape{count, 1, 1, 1, 1});
        };
        const Val begin = edge(column), end = edge(column + 2);
        Val size = end - begin;
        if (!options.half_pixel) {
            size = Max(size, 1);
        }
        const Val bin = size / static_cast<double>(bins);
        const Val place = begin + b.Iota(ElementType::kF32, grid, axis) * bin +
                          (b.Iota(ElementType::kF32, grid, axis + 1) + 0.5) * bin /
                              static_cast<double>(options.samples);
        const Val limit = Cast(b.Size(n), ElementType::kF32);
        const Val valid = And(GreaterEqual(place, -1), map::LessEqual(place, limit));
        const Val inside = map::Min(Max(place, 0), limit - 1.0);
        const Val base = map::Floor(inside);
        const Val t = inside - base;
        return Neighbours{Cast(base, ElementType::kI64),
                          Cast(map::Min(base + 1.0, limit - 1.0), ElementType::kI64), 1.0 - t, t,
                          valid};
    };
    const Neighbours y = along(1, 1, options.height, x.dim(2));
    const Neighbours w = along(0, 3, options.width, x.dim(3));
    const Shape result{count,           x.dim(1),      options.height,
                       options.samples, options.width, options.samples};
    const Val image = Reshape(Cast(batch_indices, ElementType::kI64), Shape{count, 1, 1, 1, 1, 1});
    const ElementType compute = ComputeType(x.element());
    const auto corner = [&](Val row, Val column, Val weight) {
        const Val value =
            Gather(x, {-1, 1, -2, -3}, {image, Unsqueeze(row, 1), Unsqueeze(column, 1)}, result);
        return Cast(value, compute) * Cast(Unsqueeze(weight, 1), compute);
    };
    const Val corners[] = {corner(y.low, w.low, y.near_low * w.near_low),
                           corner(y.low, w.high, y.near_low * w.near_high),
                           corner(y.high, w.low, y.near_high * w.near_low),
                           corner(y.high, w.high, y.near_high * w.near_high)};
    const Val valid = Unsqueeze(And(y.valid, w.valid), 1);
    Val value = corners[0];
    for (size_t i = 1; i < 4; ++i) {
        value = options.max ? map::Max(value, corners[i]) : value + corners[i];
    }
    value = Where(valid, value, Like(value, 0));
    return Cast(
        options.max ? Reduce(Combine::kMax, value, {3, 5}, false) : Mean(value, {3, 5}, false),
        x.element());
}

}  // namespace fornax::graph

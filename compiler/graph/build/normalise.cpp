// Softmax and the normalisations.
#include "compiler/graph/build/normalise.h"

#include <fmt/format.h>

#include "compiler/graph/build/activations.h"

namespace fornax::graph {
namespace {

// A vector [channels] as [channels, 1, ...] for a value of this rank.
Val PerChannel(Val vector, int64_t rank) {
    std::vector<Expr> dims = {vector.dim(0)};
    dims.resize(static_cast<size_t>(std::max<int64_t>(rank - 1, 1)), Expr(1));
    return Reshape(vector, Shape(std::move(dims)));
}

std::vector<int64_t> AxesFrom(int64_t first, int64_t rank) {
    std::vector<int64_t> axes;
    for (int64_t axis = first; axis < rank; ++axis) {
        axes.push_back(axis);
    }
    return axes;
}

}  // namespace

Val Softmax(Val x, int64_t axis) {
    axis = Builder::Axis(axis, x.rank());
    return x.builder().Composite("softmax", {{"axis", axis}}, {x}, [&](Builder&, Vals in) -> Vals {
        return {Widened(in[0], [&](Val v) {
            const Val e = map::Exp(v - Reduce(Combine::kMax, v, {axis}, true));
            return e / Sum(e, {axis});
        })};
    })[0];
}

Val LogSoftmax(Val x, int64_t axis) {
    axis = Builder::Axis(axis, x.rank());
    return x.builder().Composite(
        "log_softmax", {{"axis", axis}}, {x}, [&](Builder&, Vals in) -> Vals {
            return {Widened(in[0], [&](Val v) {
                const Val shifted = v - Reduce(Combine::kMax, v, {axis}, true);
                return shifted - map::Log(Sum(map::Exp(shifted), {axis}));
            })};
        })[0];
}

Val Hardmax(Val x, int64_t axis) {
    axis = Builder::Axis(axis, x.rank());
    const Val best = ArgReduce(Combine::kMax, x, axis, true);
    const Val place = x.builder().Iota(ElementType::kI64, x.shape(), axis);
    return Cast(map::Equal(place, best), x.element());
}

LayerNormResult LayerNorm(Val x,
                          Val scale,
                          Val bias,
                          int64_t axis,
                          double epsilon,
                          ElementType compute) {
    axis = Builder::Axis(axis, x.rank());
    const Vals results = x.builder().Composite(
        "layer_norm", {{"axis", axis}, {"epsilon", epsilon}}, {x, scale, bias},
        [&](Builder&, Vals in) -> Vals {
            const std::vector<int64_t> axes = AxesFrom(axis, x.rank());
            const Val v = Cast(in[0], compute);
            const Val mean = Mean(v, axes);
            const Val centred = v - mean;
            const Val inverse = map::Reciprocal(map::Sqrt(Mean(centred * centred, axes) + epsilon));
            Val y = Cast(centred * inverse, in[0].element()) * in[1];
            if (in[2]) {
                y = y + in[2];
            }
            return {y, mean, inverse};
        });
    return {results[0], results[1], results[2]};
}

Val RmsNorm(Val x, Val scale, int64_t axis, double epsilon, ElementType compute) {
    axis = Builder::Axis(axis, x.rank());
    return x.builder().Composite("rms_norm", {{"axis", axis}, {"epsilon", epsilon}}, {x, scale},
                                 [&](Builder&, Vals in) -> Vals {
                                     const Val v = Cast(in[0], compute);
                                     const Val square = Mean(v * v, AxesFrom(axis, x.rank()));
                                     const Val y = v * map::Reciprocal(map::Sqrt(square + epsilon));
                                     return {Cast(y, in[1].element()) * in[1]};
                                 })[0];
}

Val GroupNorm(Val x, Val scale, Val bias, int64_t groups, double epsilon, ElementType compute) {
    if (x.rank() < 2) {
        FailInvalid("the input has less than 2 dimensions");
    }
    return x.builder().Composite(
        "group_norm", {{"groups", groups}, {"epsilon", epsilon}}, {x, scale, bias},
        [&](Builder& b, Vals in) -> Vals {
            const Shape shape = in[0].shape();
            const Expr& channels = shape[1];
            if (groups < 1 || !b.sizes().Equal(Mod(channels, groups), 0)) {
                FailInvalid(fmt::format("{} channels are not divisible into {} groups",
                                        channels.ToString(), groups));
            }
            std::vector<Expr> dims(shape.dims().begin(), shape.dims().end());
            dims[1] = FloorDiv(channels, groups);
            dims.insert(dims.begin() + 1, Expr(groups));
            const Val v = Reshape(Cast(in[0], compute), Shape(std::move(dims)));
            const std::vector<int64_t> axes = AxesFrom(2, v.rank());
            const Val centred = v - Mean(v, axes);
            const Val inverse = map::Reciprocal(map::Sqrt(Mean(centred * centred, axes) + epsilon));
            const Val y = Reshape(centred * inverse, shape);
            return {Cast(y * PerChannel(Cast(in[1], compute), x.rank()) +
                             PerChannel(Cast(in[2], compute), x.rank()),
                         in[0].element())};
        })[0];
}

Val InstanceNorm(Val x, Val scale, Val bias, double epsilon) {
    return x.builder().Composite(
        "instance_norm", {{"epsilon", epsilon}}, {x, scale, bias}, [&](Builder&, Vals in) -> Vals {
            return {Widened(in[0], [&](Val v) {
                const std::vector<int64_t> axes = AxesFrom(2, v.rank());
                const Val centred = v - Mean(v, axes);
                const Val inverse =
                    map::Reciprocal(map::Sqrt(Mean(centred * centred, axes) + epsilon));
                return centred * inverse * PerChannel(Cast(in[1], v.element()), v.rank()) +
                       PerChannel(Cast(in[2], v.element()), v.rank());
            })};
        })[0];
}

Val BatchNorm(Val x, Val scale, Val bias, Val mean, Val variance, double epsilon) {
    const int64_t rank = x.rank();
    const ElementType compute = ComputeType(x.element());
    const auto channel = [&](Val v) { return PerChannel(Cast(v, compute), rank); };
    // scale / deviation is a constant for most models.
    const Val factor =
        Cast(scale, compute) * map::Reciprocal(map::Sqrt(Cast(variance, compute) + epsilon));
    return Widened(x, [&](Val v) { return (v - channel(mean)) * channel(factor) + channel(bias); });
}

BatchStatistics BatchMoments(Val x) {
    std::vector<int64_t> axes = AxesFrom(2, x.rank());
    axes.insert(axes.begin(), 0);
    const Val v = Cast(x, ComputeType(x.element()));
    const Val mean = Mean(v, axes);
    const Val centred = v - mean;
    const Val variance = Mean(centred * centred, axes, false);
    return {Cast(Reshape(mean, variance.shape()), x.element()), Cast(variance, x.element())};
}

Val MeanVarianceNorm(Val x, std::span<const int64_t> axes, double epsilon) {
    return Widened(x, [&](Val v) {
        const Val centred = v - Mean(v, axes);
        return centred / (map::Sqrt(Mean(centred * centred, axes)) + epsilon);
    });
}

Val LpNorm(Val x, int64_t axis, int64_t p) {
    return Widened(x, [&](Val v) {
        const Val norm = p == 1 ? Sum(map::Abs(v), {axis}) : map::Sqrt(Sum(v * v, {axis}));
        return Where(Equal(norm, 0), Like(v, 0), v / norm);
    });
}

Val LocalResponseNorm(Val x, int64_t size, double alpha, double beta, double bias) {
    if (size < 1 || x.rank() < 2) {
        FailInvalid(fmt::format("the size is {} for {} dimensions", size, x.rank()));
    }
    return Widened(x, [&](Val v) {
        std::vector<Expr> low(static_cast<size_t>(v.rank()), Expr(0)), high = low;
        low[1] = (size - 1) / 2;
        high[1] = size - 1 - (size - 1) / 2;
        const Val windows = Window(Pad(v * v, 0, low, high), 1, size, 1, 1);
        const Val sum = Sum(windows, {-1}, false);
        return v / map::Pow(sum * (alpha / static_cast<double>(size)) + bias, Like(v, beta));
    });
}

}  // namespace fornax::graph

// Convolutions and pooling.
#include "compiler/frontends/torch/import_windows.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "compiler/frontends/torch/operator_families.h"
#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/convolve.h"
#include "compiler/graph/build/product.h"

namespace fornax::torch_frontend {

using graph::SpatialWindow;

std::vector<int64_t> SpatialInts(Node& node,
                                 std::string_view name,
                                 size_t rank,
                                 int64_t otherwise) {
    std::vector<int64_t> values = node.Has(name) ? node.Ints(name) : std::vector<int64_t>();
    if (values.empty()) {
        values.assign(rank, otherwise);
    } else if (values.size() == 1) {
        values.resize(rank, values[0]);
    }
    if (values.size() != rank) {
        FailInvalid(fmt::format("its argument {} has {} numbers for {} spatial dimensions", name,
                                values.size(), rank));
    }
    for (const int64_t value : values) {
        if (value < -INT32_MAX || value > INT32_MAX) {
            FailInvalid(fmt::format("its argument {} has the number {}", name, value));
        }
    }
    return values;
}

// The window's strides, dilations and padding, which must be valid.
void SetSteps(Node& node, size_t rank, std::vector<int64_t> strides, SpatialWindow& window) {
    window.strides = std::move(strides);
    window.dilations = SpatialInts(node, "dilation", rank, 1);
    for (const int64_t pad : SpatialInts(node, "padding", rank, 0)) {
        window.low.emplace_back(pad);
        window.high.emplace_back(pad);
    }
    window.Check(rank);
}

SpatialWindow ConvolutionWindow(Node& node, Val x, Val w) {
    if (x.rank() < 3 || w.rank() != x.rank()) {
        FailInvalid(fmt::format("the input {} and the weight {} do not fit", x.shape().ToString(),
                                w.shape().ToString()));
    }
    const size_t rank = static_cast<size_t>(x.rank() - 2);
    SpatialWindow window;
    const Shape shape = w.shape();
    window.size.assign(shape.dims().begin() + 2, shape.dims().end());
    SetSteps(node, rank, SpatialInts(node, "stride", rank, 1), window);
    return window;
}

SpatialWindow PoolWindow(Node& node, size_t rank) {
    SpatialWindow window;
    const std::vector<int64_t> size = SpatialInts(node, "kernel_size", rank, 1);
    window.size.assign(size.begin(), size.end());
    const bool has_stride = node.Has("stride") && !node.Ints("stride").empty();
    SetSteps(node, rank, has_stride ? SpatialInts(node, "stride", rank, 1) : size, window);
    return window;
}

namespace {

namespace map = graph::map;

void ImportConvolution(Node& node) {
    const Val x = node.In("input"), w = node.In("weight");
    const ElementType compute = graph::ComputeType(x.element());
    const Val bias = node.Has("bias") ? node.As("bias", compute) : Val();
    const SpatialWindow window = ConvolutionWindow(node, x, w);
    const int64_t groups = node.Int("groups", 1);
    if (!node.Bool("transposed", false)) {
        return node.Out(graph::Convolve(x, w, bias, window, groups, compute));
    }
    const Val wide = graph::Cast(x, compute), weight = graph::Cast(w, compute);
    const std::vector<int64_t> output_padding =
        SpatialInts(node, "output_padding", window.rank(), 0);
    const std::vector<Expr> extra(output_padding.begin(), output_padding.end());
    node.Out(graph::ConvolveTransposed(wide, weight, bias, window, extra, groups));
}

// [batch, channels, spatial...], with a batch of 1 where the input has none.
Val WithBatch(Val x, size_t rank) {
    if (x.rank() == static_cast<int64_t>(rank) + 1) {
        return graph::Unsqueeze(x, 0);
    }
    if (x.rank() != static_cast<int64_t>(rank) + 2) {
        FailInvalid(
            fmt::format("the input {} has not {} spatial dimensions", x.shape().ToString(), rank));
    }
    return x;
}

void OutPooled(Node& node, size_t index, Val y) {
    if (node.Wants(index)) {
        node.Out(index, graph::Reshape(y, node.ResultType(index).shape));
    }
}

template <size_t rank>
void ImportMaxPool(Node& node) {
    const Val x = WithBatch(node.In("self"), rank);
    SpatialWindow window = PoolWindow(node, rank);
    std::vector<Expr> extra;
    if (node.Bool("ceil_mode", false)) {
        window = graph::CeilWindows(window, x.shape(), extra);
    }
    const graph::MaxPoolResult result = graph::MaxPool(x, window, extra, node.Wants(1), false);
    OutPooled(node, 0, result.values);
    if (node.Wants(1)) {
        // Positions are within each plane.
        Expr plane = 1;
        for (size_t i = 0; i < rank; ++i) {
            plane *= x.dim(static_cast<int64_t>(i) + 2);
        }
        OutPooled(node, 1, map::Mod(result.positions, node.builder().Size(plane)));
    }
}

// Sums of windows, whatever they are divided by.
Val WindowSums(Val x, const SpatialWindow& window, std::span<const Expr> extra) {
    std::vector<Expr> low = {0, 0}, high = {0, 0};
    std::vector<int64_t> axes;
    for (size_t i = 0; i < window.rank(); ++i) {
        low.push_back(window.low[i]);
        high.push_back(window.high[i] + (extra.empty() ? Expr(0) : extra[i]));
        axes.push_back(-1 - static_cast<int64_t>(i));
    }
    x = graph::Pad(x, 0, low, high);
    for (size_t i = 0; i < window.rank(); ++i) {
        x = graph::Window(x, static_cast<int64_t>(i) + 2, window.size[i], window.strides[i],
                          window.dilations[i]);
    }
    return graph::Reduce(graph::Combine::kSum, x, axes, false);
}

template <size_t rank>
void ImportAveragePool(Node& node) {
    const Val x = WithBatch(node.In("self"), rank);
    SpatialWindow window = PoolWindow(node, rank);
    std::vector<Expr> extra;
    if (node.Bool("ceil_mode", false)) {
        window = graph::CeilWindows(window, x.shape(), extra);
    }
    if (node.Has("divisor_override")) {
        const double divisor = node.Float("divisor_override");
        return OutPooled(node, 0, graph::Widened(x, [&](Val v) {
                             return WindowSums(v, window, extra) / divisor;
                         }));
    }
    OutPooled(node, 0, graph::AveragePool(x, window, extra, node.Bool("count_include_pad", true)));
}

// Averages of bins along one axis, as a product with a matrix [size, bins].
Val AdaptiveAlong(Val x, int64_t axis, int64_t bins) {
    Builder& b = x.builder();
    const int64_t size = b.sizes().Fix(x.dim(axis));
    constexpr int64_t kMostElements = 1 << 24;
    if (bins < 1 || size < 1 || bins > kMostElements / size) {
        FailUnsupported(fmt::format("an axis of {} is to have {} bins", size, bins));
    }
    std::vector<float> weights(static_cast<size_t>(size * bins), 0.0F);
    for (int64_t bin = 0; bin < bins; ++bin) {
        const int64_t begin = bin * size / bins, end = ((bin + 1) * size + bins - 1) / bins;
        for (int64_t i = begin; i < end; ++i) {
            weights[static_cast<size_t>(i * bins + bin)] = 1.0F / static_cast<float>(end - begin);
        }
    }
    const Val matrix =
        graph::Cast(b.Constant(Tensor::FromFloats({size, bins}, weights)), x.element());
    return graph::MoveAxis(graph::MatMul(graph::MoveAxis(x, axis, -1), matrix), -1, axis);
}

template <size_t rank>
void ImportAdaptiveAveragePool(Node& node) {
    Val x = WithBatch(node.In("self"), rank);
    const std::vector<int64_t> bins = SpatialInts(node, "output_size", rank, 1);
    bool divisible = true, one = true;
    SpatialWindow window;
    for (size_t i = 0; i < rank; ++i) {
        one = one && bins[i] == 1;
    }
    if (one) {
        return OutPooled(node, 0, graph::GlobalAveragePool(x));
    }
    for (size_t i = 0; i < rank; ++i) {
        const int64_t size = node.builder().sizes().Fix(x.dim(static_cast<int64_t>(i) + 2));
        divisible = divisible && bins[i] > 0 && size % bins[i] == 0 && size > 0;
        const int64_t each = bins[i] > 0 ? size / bins[i] : 0;
        window.size.emplace_back(each);
        window.strides.push_back(each);
        window.dilations.push_back(1);
        window.low.emplace_back(0);
        window.high.emplace_back(0);
    }
    if (divisible) {
        return OutPooled(node, 0, graph::AveragePool(x, window, {}, false));
    }
    const ElementType type = x.element();
    x = graph::Cast(x, graph::ComputeType(type));
    for (size_t i = 0; i < rank; ++i) {
        x = AdaptiveAlong(x, static_cast<int64_t>(i) + 2, bins[i]);
    }
    OutPooled(node, 0, x);
}

void ImportCol2Im(Node& node) {
    const Val given = node.In("self");
    const Val x = given.rank() == 2 ? graph::Unsqueeze(given, 0) : given;
    constexpr size_t kRank = 2;
    SpatialWindow window;
    const std::vector<int64_t> size = SpatialInts(node, "kernel_size", kRank, 1);
    window.size.assign(size.begin(), size.end());
    SetSteps(node, kRank, SpatialInts(node, "stride", kRank, 1), window);
    if (x.rank() != 3) {
        FailInvalid(fmt::format("the columns are {}", x.shape().ToString()));
    }
    OutPooled(node, 0, graph::ColumnsToImage(x, window, node.Sizes("output_size")));
}

constexpr OperatorEntry kOperators[] = {
    {"_adaptive_avg_pool2d.default", ImportAdaptiveAveragePool<2>},
    {"_adaptive_avg_pool3d.default", ImportAdaptiveAveragePool<3>},
    {"adaptive_avg_pool1d.default", ImportAdaptiveAveragePool<1>},
    {"adaptive_avg_pool2d.default", ImportAdaptiveAveragePool<2>},
    {"avg_pool1d.default", ImportAveragePool<1>},
    {"avg_pool2d.default", ImportAveragePool<2>},
    {"avg_pool3d.default", ImportAveragePool<3>},
    {"col2im.default", ImportCol2Im},
    {"convolution.default", ImportConvolution},
    {"max_pool2d.default", ImportMaxPool<2>},
    {"max_pool2d_with_indices.default", ImportMaxPool<2>},
    {"max_pool3d_with_indices.default", ImportMaxPool<3>},
};

}  // namespace

std::span<const OperatorEntry> WindowOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend

// Gradients that are operators of their own.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/frontends/torch/import_windows.h"
#include "compiler/frontends/torch/operator_families.h"
#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/index.h"
#include "compiler/graph/build/input_gradient.h"
#include "compiler/graph/build/product.h"
#include "compiler/graph/build/weight_gradient.h"

namespace fornax::torch_frontend {
namespace {

using graph::Combine;
using graph::SpatialWindow;

// The gradient by the input: sums of windows, or the transposed convolution of the result's
// gradient.
Val InputGradient(Val gradient, Val x, Val w, const SpatialWindow& window, int64_t groups) {
    if (groups == 1 && graph::IsWindowSumFaster(gradient, w, window)) {
        if (const auto sums = graph::WindowSumInputGradient(gradient, w, window, x.shape())) {
            return *sums;
        }
    }
    std::vector<Expr> extra;
    for (size_t i = 0; i < window.rank(); ++i) {
        const int64_t axis = static_cast<int64_t>(i) + 2;
        const Expr made = (gradient.dim(axis) - 1) * window.strides[i] +
                          (window.size[i] - 1) * window.dilations[i] + 1 - window.low[i] -
                          window.high[i];
        extra.push_back(x.dim(axis) - made);
    }
    return graph::ConvolveTransposed(gradient, w, Val(), window, extra, groups);
}

// The gradient by the weight: a convolution of the input by the result's gradient, where channels
// are the batch and strides are dilations.
Val WeightGradient(Val gradient, Val x, Val w, const SpatialWindow& window, int64_t groups) {
    if (groups == 1) {
        const graph::WeightGradientForm form = graph::FastestWeightGradient(gradient, x, window);
        if (const auto product = graph::WeightGradientOf(form, gradient, x, window)) {
            return *product;
        }
    }
    const Shape shape = x.shape();
    const Expr each = graph::FloorDiv(shape[1], groups);
    std::vector<Expr> split = {shape[0], groups, each}, joined = {each, shape[0] * groups};
    std::vector<int64_t> order = {2, 1, 0};
    for (size_t i = 2; i < shape.rank(); ++i) {
        split.push_back(shape[i]);
        joined.push_back(shape[i]);
        order.push_back(static_cast<int64_t>(i) + 1);
    }
    const Val images =
        graph::Reshape(graph::Permute(graph::Reshape(x, Shape(split)), order), Shape(joined));
    const Val kernels = graph::MoveAxis(gradient, 0, 1);
    SpatialWindow swapped = window;
    std::swap(swapped.strides, swapped.dilations);
    const Shape kernel_shape = kernels.shape();
    swapped.size.assign(kernel_shape.dims().begin() + 2, kernel_shape.dims().end());
    Val result = graph::Convolve(images, kernels, Val(), swapped, groups, images.element());
    // What the last rows of the input, which no window reaches, would add.
    for (size_t i = 0; i < window.rank(); ++i) {
        result = graph::SliceAxis(result, static_cast<int64_t>(i) + 2, 0, window.size[i]);
    }
    return graph::Reshape(graph::MoveAxis(result, 0, 1), w.shape());
}

void ImportConvolutionBackward(Node& node) {
    const Val gradient = node.In("grad_output"), x = node.In("input"), w = node.In("weight");
    const ElementType compute = graph::ComputeType(x.element());
    const Val g = graph::Cast(gradient, compute), wide = graph::Cast(x, compute);
    const Val weight = graph::Cast(w, compute);
    const SpatialWindow window = ConvolutionWindow(node, x, w);
    const int64_t groups = node.Int("groups");
    if (groups < 1 || g.rank() != x.rank()) {
        FailInvalid(fmt::format("it has {} groups of {}", groups, g.shape().ToString()));
    }
    // The transposition of a convolution has that convolution as its gradient.
    const bool transposed = node.Bool("transposed");
    if (node.Wants(0)) {
        node.Out(0, transposed ? graph::Convolve(g, weight, Val(), window, groups, compute)
                               : InputGradient(g, wide, weight, window, groups));
    }
    if (node.Wants(1)) {
        node.Out(1, transposed ? WeightGradient(wide, g, weight, window, groups)
                               : WeightGradient(g, wide, weight, window, groups));
    }
    if (node.Wants(2)) {
        std::vector<int64_t> axes = {0};
        for (int64_t axis = 2; axis < g.rank(); ++axis) {
            axes.push_back(axis);
        }
        node.Out(2, graph::Reduce(Combine::kSum, g, axes, false));
    }
}

// Each result's gradient goes to the element that was the greatest.
template <int64_t rank>
void ImportMaxPoolBackward(Node& node) {
    const Val gradient = node.In("grad_output"), x = node.In("self"), places = node.In("indices");
    if (x.rank() < rank || gradient.rank() != x.rank() || places.rank() != x.rank()) {
        FailInvalid(fmt::format("the gradient {} does not fit {}", gradient.shape().ToString(),
                                x.shape().ToString()));
    }
    const auto planes = [](Val v) { return graph::Flatten(v, v.rank() - rank, v.rank()); };
    const Val zeros = node.builder().Full(gradient.element(), planes(x).shape(), 0);
    node.Out(graph::Reshape(
        graph::PutAlong(zeros, planes(places), planes(gradient), -1, Combine::kSum), x.shape()));
}

// What a row of `bins` averages, summed back: y along `axis`, which becomes `size` long, times the
// transposed matrix of the averages. weight(bin, i) is the share of element i in a bin.
template <typename Weight>
Val SpreadAlong(Val y, int64_t axis, int64_t size, const Weight& weight) {
    Builder& b = y.builder();
    const int64_t bins = b.sizes().Fix(y.dim(axis));
    constexpr int64_t kMostElements = 1 << 24;
    if (bins < 1 || size < 1 || bins > kMostElements / size) {
        FailUnsupported(fmt::format("{} averages of an axis of {}", bins, size));
    }
    std::vector<float> weights(static_cast<size_t>(size * bins));
    for (int64_t bin = 0; bin < bins; ++bin) {
        for (int64_t i = 0; i < size; ++i) {
            weights[static_cast<size_t>(bin * size + i)] = weight(bin, i);
        }
    }
    const Val matrix =
        graph::Cast(b.Constant(Tensor::FromFloats({bins, size}, weights)), y.element());
    return graph::MoveAxis(graph::MatMul(graph::MoveAxis(y, axis, -1), matrix), -1, axis);
}

template <size_t kRank>
void ImportAveragePoolBackward(Node& node) {
    const Val x = node.In("self"), gradient = node.In("grad_output");
    const SpatialWindow window = PoolWindow(node, kRank);
    const bool override = node.Has("divisor_override"), pads = node.Bool("count_include_pad", true);
    if (x.rank() < static_cast<int64_t>(kRank) + 1 || gradient.rank() != x.rank()) {
        FailInvalid(fmt::format("the gradient {} does not fit {}", gradient.shape().ToString(),
                                x.shape().ToString()));
    }
    Val result = graph::Cast(gradient, graph::ComputeType(gradient.element()));
    for (size_t i = 0; i < kRank; ++i) {
        const int64_t axis = x.rank() - static_cast<int64_t>(kRank - i);
        const int64_t size = node.builder().sizes().Fix(x.dim(axis));
        const int64_t pad = window.low[i].constant_part(), kernel = window.size[i].constant_part();
        result = SpreadAlong(result, axis, size, [&](int64_t bin, int64_t place) {
            const int64_t begin = bin * window.strides[i] - pad;
            const int64_t end = std::min(begin + kernel, size + pad);
            const int64_t first = std::max<int64_t>(begin, 0), last = std::min(end, size);
            if (place < first || place >= last) {
                return 0.0F;
            }
            return override ? 1.0F : 1.0F / static_cast<float>(pads ? end - begin : last - first);
        });
    }
    node.Out(override ? result / node.Float("divisor_override") : result);
}

template <int64_t kRank>
void ImportAdaptiveAveragePoolBackward(Node& node) {
    const Val x = node.In("self"), gradient = node.In("grad_output");
    if (x.rank() < kRank + 1 || gradient.rank() != x.rank()) {
        FailInvalid(fmt::format("the gradient {} does not fit {}", gradient.shape().ToString(),
                                x.shape().ToString()));
    }
    Val result = graph::Cast(gradient, graph::ComputeType(gradient.element()));
    for (int64_t axis = x.rank() - kRank; axis < x.rank(); ++axis) {
        const int64_t size = node.builder().sizes().Fix(x.dim(axis));
        const int64_t bins = node.builder().sizes().Fix(gradient.dim(axis));
        result = SpreadAlong(result, axis, size, [&](int64_t bin, int64_t place) {
            const int64_t begin = bin * size / bins, end = ((bin + 1) * size + bins - 1) / bins;
            return place < begin || place >= end ? 0.0F : 1.0F / static_cast<float>(end - begin);
        });
    }
    node.Out(result);
}

void ImportEmbeddingBackward(Node& node) {
    const Val gradient = node.In("grad_output"), indices = node.In("indices");
    const Expr rows = node.Size("num_weights"), columns = gradient.dim(-1);
    if (node.Bool("scale_grad_by_freq", false)) {
        FailUnsupported("it scales gradients by how often a row is used");
    }
    Builder& b = node.builder();
    const ElementType compute = graph::ComputeType(gradient.element());
    const Expr count = indices.shape().Volume();
    const Val flat = graph::Reshape(graph::Cast(indices, ElementType::kI64), Shape{count, 1});
    Val updates = graph::Reshape(graph::Cast(gradient, compute), Shape{count, columns});
    const int64_t padding = node.Int("padding_idx", -1);
    if (padding >= 0) {
        const Val skipped = graph::map::Equal(flat, b.Integer(ElementType::kI64, padding));
        updates = graph::Where(skipped, graph::Like(updates, 0), updates);
    }
    const Val zeros = b.Full(compute, Shape{rows, columns}, 0);
    node.Out(graph::Scatter(zeros, updates, {-1, 1}, {flat}, Combine::kSum));
}

constexpr OperatorEntry kOperators[] = {
    {"_adaptive_avg_pool2d_backward.default", ImportAdaptiveAveragePoolBackward<2>},
    {"_adaptive_avg_pool3d_backward.default", ImportAdaptiveAveragePoolBackward<3>},
    {"adaptive_max_pool2d_backward.default", ImportMaxPoolBackward<2>},
    {"adaptive_max_pool3d_backward.default", ImportMaxPoolBackward<3>},
    {"avg_pool2d_backward.default", ImportAveragePoolBackward<2>},
    {"avg_pool3d_backward.default", ImportAveragePoolBackward<3>},
    {"convolution_backward.default", ImportConvolutionBackward},
    {"embedding_dense_backward.default", ImportEmbeddingBackward},
    {"fractional_max_pool2d_backward.default", ImportMaxPoolBackward<2>},
    {"fractional_max_pool3d_backward.default", ImportMaxPoolBackward<3>},
    {"max_pool2d_with_indices_backward.default", ImportMaxPoolBackward<2>},
    {"max_pool3d_with_indices_backward.default", ImportMaxPoolBackward<3>},
};

}  // namespace

std::span<const OperatorEntry> BackwardOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend

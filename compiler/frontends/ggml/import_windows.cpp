// Convolutions, pools and the layouts that go with them.
#include <algorithm>
#include <limits>

#include "compiler/frontends/ggml/node.h"
#include "compiler/graph/build/convolve.h"

namespace fornax::ggml_frontend {
namespace {

using graph::ElementType;
using graph::Expr;
using graph::Shape;
using graph::SpatialWindow;
using graph::Val;

// ggml names the innermost dimension first; windows the outermost.
struct WindowParameters {
    std::vector<int64_t> strides, padding, dilations;
};

SpatialWindow WindowOf(const WindowParameters& parameters, std::vector<Expr> size) {
    SpatialWindow window;
    window.size = std::move(size);
    window.strides = parameters.strides;
    window.dilations = parameters.dilations;
    for (const int64_t padding : parameters.padding) {
        window.low.emplace_back(padding);
        window.high.emplace_back(padding);
    }
    window.Check(window.strides.size());
    return window;
}

// Pads behind for as many windows as the result has: ggml counts one where none fits. `from` and
// `to` are the spatial sizes of input and result, the outermost first.
SpatialWindow Fitted(SpatialWindow window,
                     const std::vector<int64_t>& from,
                     const std::vector<int64_t>& to) {
    for (size_t i = 0; i < window.rank(); ++i) {
        const int64_t low = *window.low[i].constant(), high = *window.high[i].constant();
        const int64_t size = (*window.size[i].constant() - 1) * window.dilations[i] + 1;
        const int64_t covered = (to[i] - 1) * window.strides[i] + size;
        const int64_t rest = from[i] + low + high - covered;
        if (rest < 0 || rest >= window.strides[i]) {
            window.high[i] = high - rest;
        }
    }
    return window;
}
SpatialWindow Fitted1D(const Node& node, const SpatialWindow& window, int64_t from) {
    return Fitted(window, {from}, {node.tensor().ne[0]});
}
SpatialWindow Fitted2D(const Node& node, const SpatialWindow& window, const Tensor& x) {
    return Fitted(window, {x.ne[1], x.ne[0]}, {node.tensor().ne[1], node.tensor().ne[0]});
}

// Strides at parameters 0 and 1, padding at 2 and 3, dilations at 4 and 5.
WindowParameters Parameters2D(const Node& node) {
    return {{node.integer(1), node.integer(0)},
            {node.integer(3), node.integer(2)},
            {node.integer(5), node.integer(4)}};
}

// Strides at parameters 0 to 2, padding at 3 to 5, dilations at 6 to 8.
WindowParameters Parameters3D(const Node& node) {
    return {{node.integer(2), node.integer(1), node.integer(0)},
            {node.integer(5), node.integer(4), node.integer(3)},
            {node.integer(8), node.integer(7), node.integer(6)}};
}

// Kernel [out channels, channels, height, width], input [batch, channels, height, width].
Val Convolution2D(const Node& node) {
    const Val w = node.Float(0), x = node.Float(1);
    const SpatialWindow window = WindowOf(Parameters2D(node), {w.dim(2), w.dim(3)});
    return Convolve(x, w, {}, Fitted2D(node, window, node.source(1)), 1, ElementType::kF32);
}

// Kernel [channels, 1, height, width].
Val ConvolutionByChannel(const Node& node) {
    const Val w = node.Float(0), x = node.Float(1);
    const SpatialWindow window = WindowOf(Parameters2D(node), {w.dim(2), w.dim(3)});
    return Convolve(x, w, {}, Fitted2D(node, window, node.source(1)), node.source(0).ne[3],
                    ElementType::kF32);
}

// Channels and batch, or channels of both sides, share the outermost dimension.
Val Convolution3D(const Node& node) {
    const int64_t channels = node.integer(9), batch = node.integer(10), out = node.integer(11);
    const Val w = node.Float(0), x = node.Float(1);
    if (node.source(0).ne[3] != channels * out || node.source(1).ne[3] != channels * batch) {
        graph::FailInvalid("the operands do not have the channels of the parameters");
    }
    const Tensor &from = node.source(1), &to = node.tensor();
    const SpatialWindow window =
        Fitted(WindowOf(Parameters3D(node), {w.dim(1), w.dim(2), w.dim(3)}),
               {from.ne[2], from.ne[1], from.ne[0]}, {to.ne[2], to.ne[1], to.ne[0]});
    const Val y = Convolve(Reshape(x, Shape({batch, channels, x.dim(1), x.dim(2), x.dim(3)})),
                           Reshape(w, Shape({out, channels, w.dim(1), w.dim(2), w.dim(3)})), {},
                           window, 1, ElementType::kF32);
    return Reshape(y, node.shape());
}

// Kernel [channels, out channels, size], input [batch, channels, size].
Val ConvolutionTransposed1D(const Node& node) {
    const Val w = node.Float(0), x = node.Float(1);
    if (node.source(0).ne[3] != 1 || node.source(1).ne[3] != 1 || node.integer(1) != 0 ||
        node.integer(2) != 1) {
        graph::FailUnsupported("padding and dilation are not covered");
    }
    const SpatialWindow window = WindowOf({{node.integer(0)}, {0}, {1}}, {w.dim(3)});
    const std::vector<Expr> extra = {0};
    const Val y =
        ConvolveTransposed(Reshape(x, Shape({x.dim(1), x.dim(2), x.dim(3)})),
                           Reshape(w, Shape({w.dim(1), w.dim(2), w.dim(3)})), {}, window, extra, 1);
    return Reshape(y, node.shape());
}

// Kernel [channels, out channels, height, width].
Val ConvolutionTransposed2D(const Node& node) {
    const Val w = node.Float(0), x = node.Float(1);
    const int64_t stride = node.integer(0);
    const SpatialWindow window = WindowOf({{stride, stride}, {0, 0}, {1, 1}}, {w.dim(2), w.dim(3)});
    const std::vector<Expr> extra = {0, 0};
    return ConvolveTransposed(x, w, {}, window, extra, 1);
}

// --- Windows in memory ---------------------------------------------------------------------------

// [batch, channels, windows.., window..] of x [batch, channels, spatial..].
Val WindowsOf(Val x, const SpatialWindow& window) {
    std::vector<Expr> low = {0, 0}, high = {0, 0};
    for (size_t i = 0; i < window.rank(); ++i) {
        low.push_back(window.low[i]);
        high.push_back(window.high[i]);
    }
    x = Pad(x, 0, low, high);
    for (size_t i = 0; i < window.rank(); ++i) {
        x = Window(x, static_cast<int64_t>(i) + 2, window.size[i], window.strides[i],
                   window.dilations[i]);
    }
    return x;
}

// [batch, windows.., channels, window..]
Val ChannelsBeforeWindow(Val windows, int64_t spatial) {
    return MoveAxis(windows, 1, 1 + spatial);
}

Val ImageToColumns(const Node& node) {
    const Tensor& kernel = node.source(0);
    const Val x = node.Float(1);
    if (node.integer(6) != 0) {
        const Tensor &from = node.source(1), &to = node.tensor();
        const SpatialWindow window =
            Fitted(WindowOf(Parameters2D(node), {kernel.ne[1], kernel.ne[0]}),
                   {from.ne[1], from.ne[0]}, {to.ne[2], to.ne[1]});
        return Reshape(ChannelsBeforeWindow(WindowsOf(x, window), 2), node.shape());
    }
    if (node.source(1).ne[3] != 1) {
        graph::FailUnsupported("the input has four dimensions");
    }
    const SpatialWindow window =
        Fitted(WindowOf({{node.integer(0)}, {node.integer(2)}, {node.integer(4)}}, {kernel.ne[0]}),
               {node.source(1).ne[0]}, {node.tensor().ne[1]});
    const Val line = Reshape(x, Shape({x.dim(1), x.dim(2), x.dim(3)}));
    return Reshape(ChannelsBeforeWindow(WindowsOf(line, window), 1), node.shape());
}

Val VolumeToColumns(const Node& node) {
    const Tensor& kernel = node.source(0);
    const int64_t channels = node.integer(9);
    const Val x = node.Float(1);
    if (channels < 1 || node.source(1).ne[3] % channels != 0) {
        graph::FailInvalid("the input does not have the channels of the parameters");
    }
    const Tensor &from = node.source(1), &to = node.tensor();
    const int64_t batch = from.ne[3] / channels;
    const SpatialWindow window =
        Fitted(WindowOf(Parameters3D(node), {kernel.ne[2], kernel.ne[1], kernel.ne[0]}),
               {from.ne[2], from.ne[1], from.ne[0]}, {to.ne[3] / batch, to.ne[2], to.ne[1]});
    const Val volume = Reshape(
        x, Shape({node.source(1).ne[3] / channels, channels, x.dim(1), x.dim(2), x.dim(3)}));
    return Reshape(ChannelsBeforeWindow(WindowsOf(volume, window), 3), node.shape());
}

// Columns [windows, channels * size] summed into [channels, places], less what is cut off.
Val ColumnsToLine(const Node& node) {
    const int64_t stride = node.integer(0), channels = node.integer(1), cut = node.integer(2);
    const Tensor& columns = node.source(0);
    if (channels < 1 || columns.ne[0] % channels != 0) {
        graph::FailInvalid("the columns are not divisible by the channels");
    }
    const SpatialWindow window = WindowOf({{stride}, {cut}, {1}}, {Expr(columns.ne[0] / channels)});
    const Val x = TransposeMatrix(Reshape(node.Float(0), Shape({1, columns.ne[1], columns.ne[0]})));
    const std::vector<Expr> image = {node.tensor().ne[0]};
    return Reshape(ColumnsToImage(x, window, image), node.shape());
}

// --- Pools ---------------------------------------------------------------------------------------

enum class Pool : int32_t { kMax = 0, kMean = 1 };

bool IsMean(const Node& node) {
    const int32_t kind = node.integer(0);
    if (kind != static_cast<int32_t>(Pool::kMax) && kind != static_cast<int32_t>(Pool::kMean)) {
        graph::FailUnsupported("this pool is not covered");
    }
    return kind == static_cast<int32_t>(Pool::kMean);
}

// Windows without an element give the least number.
Val Greatest(Val x, const SpatialWindow& window) {
    const std::vector<Expr> extra(window.rank(), Expr(0));
    return Max(MaxPool(x, window, extra, false, false).values,
               std::numeric_limits<float>::lowest());
}

// Means over whole windows, padding included.
Val MeanOfWindows(Val x, const SpatialWindow& window) {
    const std::vector<Expr> extra(window.rank(), Expr(0));
    return AveragePool(x, window, extra, true);
}

// Means are over the elements that exist.
Val Pool1D(const Node& node) {
    const Val input = node.Float(0);
    const int64_t size = node.integer(1), stride = node.integer(2), padding = node.integer(3),
                  from = node.source(0).ne[0];
    const SpatialWindow window =
        Fitted1D(node, WindowOf({{stride}, {padding}, {1}}, {Expr(size)}), from);
    const Val x = Reshape(input, Shape({input.dim(0) * input.dim(1), input.dim(2), input.dim(3)}));
    if (!IsMean(node)) {
        return Reshape(Greatest(x, window), node.shape());
    }
    std::vector<float> share;  // of the window's elements to those that exist
    for (int64_t i = 0; i < node.tensor().ne[0]; ++i) {
        const int64_t begin = std::max<int64_t>(i * stride - padding, 0);
        const int64_t count = std::min(i * stride - padding + size, from) - begin;
        share.push_back(count > 0 ? static_cast<float>(size) / static_cast<float>(count) : 0);
    }
    const Val factor =
        Reshape(node.builder().Constant(graph::Tensor::FromFloats({node.tensor().ne[0]}, share)),
                Shape({1, 1, node.tensor().ne[0]}));
    return Reshape(MeanOfWindows(x, window) * factor, node.shape());
}

Val Pool2D(const Node& node) {
    const SpatialWindow window = Fitted2D(
        node,
        WindowOf({{node.integer(4), node.integer(3)}, {node.integer(6), node.integer(5)}, {1, 1}},
                 {Expr(node.integer(2)), Expr(node.integer(1))}),
        node.source(0));
    const Val x = node.Float(0);
    return IsMean(node) ? MeanOfWindows(x, window) : Greatest(x, window);
}

// Each row of x [1, sequences, channels, size] with a short filter of its channel.
Val StateConvolution(const Node& node) {
    const Val x = node.Float(0), filter = node.Float(1);
    const int64_t size = node.source(1).ne[0];
    const Val windows = Window(x, 3, size, 1, 1);  // [1, sequences, channels, times, size]
    const Val products = windows * Reshape(filter, Shape({1, 1, filter.dim(2), 1, filter.dim(3)}));
    return Permute(Sum(products, {4}, false), {0, 1, 3, 2});
}

constexpr Operator kOperators[] = {
    {"CONV_2D", Convolution2D},
    {"CONV_2D_DW", ConvolutionByChannel},
    {"CONV_3D", Convolution3D},
    {"CONV_TRANSPOSE_1D", ConvolutionTransposed1D},
    {"CONV_TRANSPOSE_2D", ConvolutionTransposed2D},
    {"IM2COL", ImageToColumns},
    {"IM2COL_3D", VolumeToColumns},
    {"COL2IM_1D", ColumnsToLine},
    {"POOL_1D", Pool1D},
    {"POOL_2D", Pool2D},
    {"SSM_CONV", StateConvolution},
};

}  // namespace

std::span<const Operator> WindowOperators() {
    return kOperators;
}

}  // namespace fornax::ggml_frontend

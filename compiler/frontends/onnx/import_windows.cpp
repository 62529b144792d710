// Convolutions and pooling.
#include <fmt/format.h>

#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/frontends/onnx/window_attributes.h"
#include "compiler/graph/build/convolve.h"

namespace fornax::onnx_frontend {

using graph::AutoPad;
using graph::SpatialWindow;

AutoPad ReadAutoPad(Node& node) {
    const std::string mode = node.Text("auto_pad", "NOTSET");
    if (mode == "SAME_UPPER") {
        return AutoPad::kSameUpper;
    }
    if (mode == "SAME_LOWER") {
        return AutoPad::kSameLower;
    }
    if (mode == "VALID") {
        return AutoPad::kValid;
    }
    if (mode != "NOTSET" && !mode.empty()) {
        FailInvalid(fmt::format("its auto_pad is \"{}\"", mode));
    }
    return AutoPad::kNone;
}

SpatialWindow ReadWindow(Node& node, Val x, Val w) {
    if (x.rank() < 3) {
        FailInvalid(fmt::format("the input {} has no spatial dimensions", x.shape().ToString()));
    }
    const size_t rank = static_cast<size_t>(x.rank() - 2);
    SpatialWindow window;
    const std::vector<int64_t> kernel = node.Ints("kernel_shape");
    if (!kernel.empty()) {
        window.size.assign(kernel.begin(), kernel.end());
    } else if (w) {
        const Shape shape = w.shape();
        window.size.assign(shape.dims().begin() + std::min<size_t>(2, shape.rank()),
                           shape.dims().end());
    } else {
        FailInvalid("it lacks the attribute kernel_shape");
    }
    window.strides = node.Ints("strides");
    if (window.strides.empty()) {
        window.strides.assign(rank, 1);
    }
    window.dilations = node.Ints("dilations");
    if (window.dilations.empty()) {
        window.dilations.assign(rank, 1);
    }
    std::vector<int64_t> pads = node.Ints("pads");
    if (pads.empty()) {
        pads.assign(2 * rank, 0);
    }
    if (pads.size() != 2 * rank) {
        FailInvalid(fmt::format("it has {} pads for {} spatial dimensions", pads.size(), rank));
    }
    for (size_t i = 0; i < rank; ++i) {
        for (const int64_t pad : {pads[i], pads[i + rank]}) {
            if (pad < -INT32_MAX || pad > INT32_MAX) {
                FailInvalid(fmt::format("it pads by {}", pad));
            }
        }
        window.low.emplace_back(pads[i]);
        window.high.emplace_back(pads[i + rank]);
    }
    window.Check(rank);
    graph::ApplyAutoPad(window, ReadAutoPad(node), x.shape());
    return window;
}

SpatialWindow ReadPoolWindow(Node& node, Val x, std::vector<Expr>& extra) {
    SpatialWindow window = ReadWindow(node, x, Val());
    if (node.Int("ceil_mode", 0) != 0) {
        window = graph::CeilWindows(window, x.shape(), extra);
    }
    return window;
}

namespace {

void ImportConv(Node& node) {
    const Val x = node.In(0), w = node.In(1);
    node.Out(graph::Convolve(x, w, node.Opt(2), ReadWindow(node, x, w), node.Int("group", 1),
                             x.element()));
}

void ImportConvTranspose(Node& node) {
    const Val x = node.In(0), w = node.In(1);
    SpatialWindow window = ReadWindow(node, x, w);
    const size_t rank = window.rank();
    std::vector<int64_t> output_padding = node.Ints("output_padding");
    output_padding.resize(rank, 0);
    std::vector<Expr> extra(output_padding.begin(), output_padding.end());
    const std::vector<int64_t> wanted = node.Ints("output_shape");
    const AutoPad mode = ReadAutoPad(node);
    if (!wanted.empty() || mode == AutoPad::kSameUpper || mode == AutoPad::kSameLower) {
        // The padding follows from the size that is wanted.
        if (!wanted.empty() && wanted.size() < rank) {
            FailInvalid(fmt::format("its output_shape has {} sizes for {} spatial dimensions",
                                    wanted.size(), rank));
        }
        for (size_t i = 0; i < rank; ++i) {
            const Expr n = x.dim(static_cast<int64_t>(i) + 2);
            const Expr size =
                wanted.empty() ? n * window.strides[i] : Expr(wanted[wanted.size() - rank + i]);
            const Expr total = (n - 1) * window.strides[i] +
                               (window.size[i] - 1) * window.dilations[i] + 1 + output_padding[i] -
                               size;
            const Expr less = graph::FloorDiv(total, 2);
            window.low[i] = mode == AutoPad::kSameUpper ? less : total - less;
            window.high[i] = total - window.low[i];
        }
    }
    node.Out(graph::ConvolveTransposed(x, w, node.Opt(2), window, extra, node.Int("group", 1)));
}

void ImportDeformConv(Node& node) {
    const Val x = node.In(0), w = node.In(1);
    node.Out(graph::DeformableConvolve(x, w, node.In(2), node.Opt(3), node.Opt(4),
                                       ReadWindow(node, x, w), node.Int("group", 1),
                                       node.Int("offset_group", 1)));
}

void ImportMaxPool(Node& node) {
    const Val x = node.In(0);
    std::vector<Expr> extra;
    const SpatialWindow window = ReadPoolWindow(node, x, extra);
    const graph::MaxPoolResult result =
        graph::MaxPool(x, window, extra, node.Wants(1), node.Int("storage_order", 0) != 0);
    node.Out(0, result.values);
    if (node.Wants(1)) {
        node.Out(1, result.positions);
    }
}

void ImportAveragePool(Node& node) {
    const Val x = node.In(0);
    std::vector<Expr> extra;
    const SpatialWindow window = ReadPoolWindow(node, x, extra);
    node.Out(graph::AveragePool(x, window, extra, node.Int("count_include_pad", 0) != 0));
}

int64_t ReadP(Node& node) {
    const int64_t p = node.Int("p", 2);
    if (p < 1) {
        FailInvalid(fmt::format("its p is {}", p));
    }
    return p;
}

void ImportLpPool(Node& node) {
    const Val x = node.In(0);
    std::vector<Expr> extra;
    const SpatialWindow window = ReadPoolWindow(node, x, extra);
    node.Out(graph::LpPool(x, window, extra, ReadP(node)));
}

void ImportGlobalAveragePool(Node& node) {
    node.Out(graph::GlobalAveragePool(node.In(0)));
}
void ImportGlobalMaxPool(Node& node) {
    node.Out(graph::GlobalMaxPool(node.In(0)));
}
void ImportGlobalLpPool(Node& node) {
    node.Out(graph::GlobalLpPool(node.In(0), ReadP(node)));
}

void ImportMaxUnpool(Node& node) {
    const Val x = node.In(0);
    const SpatialWindow window = ReadWindow(node, x, Val());
    Shape shape = x.shape();
    for (size_t i = 0; i < window.rank(); ++i) {
        Expr& dim = shape[i + 2];
        dim = (dim - 1) * window.strides[i] + window.size[i] - window.low[i] - window.high[i];
    }
    Val y = graph::MaxUnpool(x, node.In(1), shape);
    if (node.Has(2)) {
        // Positions are those of the shape that follows from the window.
        const std::vector<Expr> wanted = node.Sizes(2, "the output's shape");
        if (wanted.size() != shape.rank()) {
            FailInvalid(fmt::format("the output's shape has {} dimensions, not {}", wanted.size(),
                                    shape.rank()));
        }
        std::vector<Expr> low(shape.rank(), Expr(0)), high;
        for (size_t i = 0; i < shape.rank(); ++i) {
            high.push_back(wanted[i] - shape[i]);
        }
        y = graph::Pad(y, 0, low, high);
    }
    node.Out(y);
}

void ImportCol2Im(Node& node) {
    const Val x = node.In(0);
    const std::vector<Expr> image = node.Sizes(1, "the image's shape");
    SpatialWindow window;
    window.size = node.Sizes(2, "the block's shape");
    const size_t rank = image.size();
    window.strides = node.Ints("strides");
    window.dilations = node.Ints("dilations");
    window.strides.resize(window.strides.empty() ? rank : window.strides.size(), 1);
    window.dilations.resize(window.dilations.empty() ? rank : window.dilations.size(), 1);
    std::vector<int64_t> pads = node.Ints("pads");
    pads.resize(pads.empty() ? 2 * rank : pads.size(), 0);
    if (pads.size() != 2 * rank || x.rank() != 3) {
        FailInvalid(fmt::format("the columns {} and {} pads do not fit an image of {} dimensions",
                                x.shape().ToString(), pads.size(), rank));
    }
    window.low.assign(pads.begin(), pads.begin() + static_cast<int64_t>(rank));
    window.high.assign(pads.begin() + static_cast<int64_t>(rank), pads.end());
    node.Out(graph::ColumnsToImage(x, window, image));
}

constexpr OperatorEntry kOperators[] = {
    {"AveragePool", 1, ImportAveragePool},
    {"Col2Im", 3, ImportCol2Im},
    {"Conv", 2, ImportConv},
    {"ConvTranspose", 2, ImportConvTranspose},
    {"DeformConv", 3, ImportDeformConv},
    {"GlobalAveragePool", 1, ImportGlobalAveragePool},
    {"GlobalLpPool", 1, ImportGlobalLpPool},
    {"GlobalMaxPool", 1, ImportGlobalMaxPool},
    {"LpPool", 1, ImportLpPool},
    {"MaxPool", 1, ImportMaxPool},
    {"MaxUnpool", 2, ImportMaxUnpool},
};

}  // namespace

std::span<const OperatorEntry> WindowOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend

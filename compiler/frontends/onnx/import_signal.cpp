// Window functions and Fourier transforms.
#include <fmt/format.h>

#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/graph/build/signal.h"

namespace fornax::onnx_frontend {
namespace {

using graph::Transform;

Expr ReadSize(Node& node, size_t input, std::string_view what) {
    const std::vector<Expr> sizes = node.Sizes(input, what);
    if (sizes.size() != 1) {
        FailInvalid(fmt::format("{} has {} elements, not 1", what, sizes.size()));
    }
    return sizes[0];
}

void ImportWindow(Node& node, double a0, double a1, double a2) {
    node.Out(graph::CosineWindow(node.builder(), ReadSize(node, 0, "the size"),
                                 node.Int("periodic", 1) != 0, a0, a1, a2,
                                 node.Type("output_datatype", ElementType::kF32)));
}

void ImportHann(Node& node) { ImportWindow(node, 0.5, 0.5, 0); }
void ImportHamming(Node& node) { ImportWindow(node, 25.0 / 46, 21.0 / 46, 0); }
void ImportBlackman(Node& node) { ImportWindow(node, 0.42, 0.5, 0.08); }

void ImportDft(Node& node) {
    const Val x = node.In(0);
    const bool inverse = node.Int("inverse", 0) != 0, half = node.Int("onesided", 0) != 0;
    int64_t axis = node.version() >= 20 ? -2 : node.Int("axis", 1);
    if (node.version() >= 20 && node.Has(2)) {
        axis = node.Integer(2, "the axis");
    }
    const Expr size = x.dim(axis);
    const Expr length = node.Has(1)        ? ReadSize(node, 1, "the length")
                        : inverse && half ? (size - 1) * 2
                                           : size;
    node.Out(graph::FourierTransform(x, axis, length,
                                     inverse ? (half ? Transform::kInverseHalf : Transform::kInverse)
                                     : half  ? Transform::kForwardHalf
                                             : Transform::kForward));
}

void ImportStft(Node& node) {
    const Val window = node.Opt(2);
    if (!window && !node.Has(3)) {
        FailInvalid("it has neither a window nor a frame length");
    }
    const Expr length = node.Has(3) ? ReadSize(node, 3, "the frame length") : window.dim(0);
    node.Out(graph::ShortTimeTransform(node.In(0), node.Integer(1, "the step"), window, length,
                                       node.Int("onesided", 1) != 0));
}

void ImportMelWeights(Node& node) {
    const auto number = [&](size_t input, std::string_view what) {
        const std::vector<double> values = node.Numbers(input, what);
        if (values.size() != 1) {
            FailInvalid(fmt::format("{} has {} elements, not 1", what, values.size()));
        }
        return values[0];
    };
    node.Out(graph::MelWeights(node.builder(), node.Integer(0, "the number of bins"),
                               node.Integer(1, "the length"), node.Integer(2, "the sample rate"),
                               number(3, "the lower edge"), number(4, "the upper edge"),
                               node.Type("output_datatype", ElementType::kF32)));
}

constexpr OperatorEntry kOperators[] = {
    {"BlackmanWindow", 1, ImportBlackman}, {"DFT", 1, ImportDft},
    {"HammingWindow", 1, ImportHamming},   {"HannWindow", 1, ImportHann},
    {"MelWeightMatrix", 5, ImportMelWeights}, {"STFT", 2, ImportStft},
};

}  // namespace

std::span<const OperatorEntry> SignalOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend

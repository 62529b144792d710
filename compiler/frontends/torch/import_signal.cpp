// Fourier transforms of numbers in two parts: the package's own operator, since torch's has complex
// numbers.
#include <fmt/format.h>

#include "compiler/frontends/torch/operator_families.h"
#include "compiler/graph/build/signal.h"

namespace fornax::torch_frontend {
namespace {

void ImportDft(Node& node) {
    const int64_t kind = node.Int("kind");
    if (kind < 0 || kind > static_cast<int64_t>(graph::Transform::kInverseHalf)) {
        FailInvalid(fmt::format("its kind is {}", kind));
    }
    const Expr length = node.Size("length");
    if (!node.builder().sizes().Less(0, length)) {
        FailInvalid(fmt::format("its length is {}", length.ToString()));
    }
    node.Out(graph::FourierTransform(node.In("x"), node.Int("dim"), length,
                                     static_cast<graph::Transform>(kind)));
}

constexpr OperatorEntry kOperators[] = {
    {"fornax.dft.default", ImportDft},
};

}  // namespace

std::span<const OperatorEntry> SignalOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend

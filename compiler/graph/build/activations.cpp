// Elementwise functions that are more than one primitive.
#include "compiler/graph/build/activations.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace fornax::graph {

bool IsNarrowFloat(ElementType type) {
    return IsFloat(type) && type != ElementType::kF32 && type != ElementType::kF64;
}

ElementType ComputeType(ElementType type) {
    return IsNarrowFloat(type) ? ElementType::kF32 : type;
}

Val Relu(Val x) {
    return Max(x, 0);
}

Val Clip(Val x, Val low, Val high) {
    if (low) {
        x = map::Max(x, low);
    }
    return high ? map::Min(x, high) : x;
}

Val LeakyRelu(Val x, double alpha) {
    return Widened(x, [&](Val v) { return Where(Less(v, 0), v * alpha, v); });
}

Val PRelu(Val x, Val slope) {
    return Where(Less(x, 0), x * slope, x);
}

Val Elu(Val x, double alpha) {
    return Widened(x, [&](Val v) { return Where(Less(v, 0), map::Expm1(v) * alpha, v); });
}

Val Celu(Val x, double alpha) {
    return Widened(x, [&](Val v) { return Max(v, 0) + Min(map::Expm1(v / alpha) * alpha, 0); });
}

Val Selu(Val x, double alpha, double gamma) {
    return Widened(x,
                   [&](Val v) { return gamma * Where(LessEqual(v, 0), map::Expm1(v) * alpha, v); });
}

Val Softplus(Val x) {
    // log(1 + e^x) without overflow.
    return Widened(x, [&](Val v) { return Max(v, 0) + map::Log1p(map::Exp(-map::Abs(v))); });
}

Val Softsign(Val x) {
    return Widened(x, [&](Val v) { return v / (map::Abs(v) + 1.0); });
}

Val HardSigmoid(Val x, double alpha, double beta) {
    return Widened(x, [&](Val v) { return Max(Min(v * alpha + beta, 1), 0); });
}

Val HardSwish(Val x) {
    return Widened(x, [&](Val v) { return v * Max(Min(v * (1.0 / 6) + 0.5, 1), 0); });
}

Val Swish(Val x, double alpha) {
    return Widened(x, [&](Val v) { return v * map::Sigmoid(alpha == 1 ? v : v * alpha); });
}

Val Mish(Val x) {
    return Widened(x, [&](Val v) { return v * map::Tanh(Softplus(v)); });
}

Val Gelu(Val x, bool tanh) {
    return x.builder().Composite(
        "gelu", {{"approximate", std::string(tanh ? "tanh" : "none")}}, {x},
        [&](Builder&, Vals in) -> Vals {
            return {Widened(in[0], [&](Val v) {
                if (!tanh) {
                    return 0.5 * v * (map::Erf(v * std::numbers::sqrt2 * 0.5) + 1.0);
                }
                const double scale = std::sqrt(2 / std::numbers::pi);
                return 0.5 * v * (map::Tanh(scale * (v + 0.044715 * v * v * v)) + 1.0);
            })};
        })[0];
}

Val ThresholdedRelu(Val x, double alpha) {
    return Where(Greater(x, alpha), x, Like(x, 0));
}

Val Shrink(Val x, double bias, double lambda) {
    const Val zero = Like(x, 0);
    return Where(Less(x, -lambda), x + bias, Where(Greater(x, lambda), x - bias, zero));
}

Val IsInf(Val x, bool negative, bool positive) {
    const Val infinite = map::IsInf(x);
    if (negative && positive) {
        return infinite;
    }
    if (!negative && !positive) {
        return x.builder().Full(ElementType::kBool, x.shape(), 0);
    }
    return And(infinite, negative ? Less(x, 0) : Greater(x, 0));
}

}  // namespace fornax::graph

// Operators that work element by element, and copies.
#include <cmath>
#include <limits>

#include "compiler/frontends/ggml/node.h"
#include "compiler/graph/build/activations.h"

namespace fornax::ggml_frontend {
namespace {

using graph::ElementType;
using graph::Shape;
using graph::Val;

// Element by element, the second operand repeated.
template <Val (*kFunction)(Val, Val)>
Val Binary(const Node& node) {
    return kFunction(node.Float(0), RepeatTo(node.Float(1), node.shape()));
}

// Numbers to the node's type as ggml converts them: to integers by cutting off.
Val Converted(const Node& node, Val value) {
    const TypeInfo& type = *node.tensor().type;
    const ElementType to = type.is_quantised() ? ElementType::kF32 : type.element;
    return graph::IsFloat(value.element()) && graph::IsInteger(to) ? Cast(map::Trunc(value), to)
                                                                   : Cast(value, to);
}

// The elements in order, in the node's type and shape.
Val Copy(const Node& node) {
    if (node.source(0).type == node.tensor().type) {
        return Reshape(node.Raw(0), node.memory_shape());  // of quantised types the bytes
    }
    if (node.tensor().type->is_quantised() && node.source(0).type->element != ElementType::kF32) {
        // Numbers of few bits often lie in the middle between two codes, where ggml's own backends
        // choose differently.
        graph::FailUnsupported("only f32 is quantised");
    }
    const Val value = node.source(0).type->is_quantised() ? node.Float(0) : node.Raw(0);
    return Reshape(Converted(node, value), node.shape());
}

Val Repeat(const Node& node) {
    return RepeatTo(node.Raw(0), node.shape());
}

// x * scale + bias
Val Scale(const Node& node) {
    const Val scaled = node.Float(0) * node.number(0);
    return node.number(1) == 0 ? scaled : scaled + node.number(1);
}

Val Clamp(const Node& node) {
    return Min(Max(node.Float(0), node.number(0)), node.number(1));
}

Val AddOne(const Node& node) {
    const Val one = node.Float(1);
    if (one.shape().Constants() != std::vector<int64_t>{1, 1, 1, 1}) {
        graph::FailInvalid("the second operand of ADD1 has more than one element");
    }
    return node.Float(0) + one;
}

Val LeakyReluNode(const Node& node) {
    return graph::LeakyRelu(node.Float(0), node.number(0));
}

Val ConcatNode(const Node& node) {
    const int32_t dim = node.integer(0);
    if (dim < 0 || dim >= static_cast<int32_t>(kDims) ||
        node.source(0).type != node.source(1).type) {
        graph::FailUnsupported("this concatenation is not covered");
    }
    return graph::Concat({node.Raw(0), node.Raw(1)}, 3 - dim);
}

// --- Unary ---------------------------------------------------------------------------------------

template <Val (*kFunction)(Val)>
Val Unary(const Node& node) {
    return kFunction(node.Float(0));
}

Val Square(Val x) {
    return x * x;
}
Val Step(Val x) {
    return Cast(Greater(x, 0), ElementType::kF32);
}
Val EluOfOne(Val x) {
    return graph::Elu(x, 1);
}
Val GeluTanh(Val x) {
    return graph::Gelu(x, true);
}
Val GeluErf(Val x) {
    return graph::Gelu(x, false);
}
Val GeluQuick(Val x) {
    return x * map::Sigmoid(x * 1.702);
}
Val Silu(Val x) {
    return x * map::Sigmoid(x);
}
Val HardSigmoidOfSix(Val x) {
    return Min(Max((x + 3.0) / 6.0, 0), 1);
}
Val HardSwishOfSix(Val x) {
    return x * HardSigmoidOfSix(x);
}
// Halves go away from zero.
Val RoundAway(Val x) {
    return map::Sign(x) * map::Floor(map::Abs(x) + 0.5);
}
Val SoftplusOfOne(Val x) {
    return Where(Greater(x, 20), x, map::Log1p(map::Exp(Min(x, 20))));
}

Val Xielu(const Node& node) {
    const float alpha_n = node.number(1), alpha_p = node.number(2), beta = node.number(3),
                epsilon = node.number(4);
    const Val x = node.Float(0);
    const Val below = (map::Expm1(Min(x, epsilon)) - x) * alpha_n + x * beta;
    return Where(Greater(x, 0), x * x * alpha_p + x * beta, below);
}

// --- Gated ---------------------------------------------------------------------------------------

struct Gate {
    Val x, gate;
};

// Two tensors, or the halves of the rows of one, in either order.
Gate GateOf(const Node& node) {
    const Val first = node.Float(0);
    if (node.has(1)) {
        return {first, node.Float(1)};
    }
    const int64_t half = node.tensor().ne[0];
    const bool swapped = node.integer(1) != 0;
    return {SliceAxis(first, 3, swapped ? half : 0, half),
            SliceAxis(first, 3, swapped ? 0 : half, half)};
}

template <Val (*kFunction)(Val)>
Val Gated(const Node& node) {
    const Gate gate = GateOf(node);
    return kFunction(gate.x) * gate.gate;
}

Val GatedOai(const Node& node) {
    const Gate gate = GateOf(node);
    const float alpha = node.number(2), limit = node.number(3);
    const Val x = Min(gate.x, limit);
    const Val y = Min(Max(gate.gate, -limit), limit);
    return x * map::Sigmoid(x * alpha) * (y + 1.0);
}

// The gate up to a limit, the other within it on both sides.
Val GatedClamped(const Node& node) {
    const Gate gate = GateOf(node);
    const float limit = node.number(3);
    return Silu(Min(gate.x, limit)) * Min(Max(gate.gate, -limit), limit);
}

constexpr Operator kOperators[] = {
    {"ADD", Binary<map::Add>},
    {"SUB", Binary<map::Sub>},
    {"MUL", Binary<map::Mul>},
    {"DIV", Binary<map::Div>},
    {"ADD1", AddOne},
    {"DUP", Copy},
    {"CPY", Copy},
    {"CONT", Copy},
    {"REPEAT", Repeat},
    {"CONCAT", ConcatNode},
    {"SCALE", Scale},
    {"CLAMP", Clamp},
    {"SQR", Unary<Square>},
    {"SQRT", Unary<map::Sqrt>},
    {"LOG", Unary<map::Log>},
    {"SIN", Unary<map::Sin>},
    {"COS", Unary<map::Cos>},
    {"LEAKY_RELU", LeakyReluNode},
    {"UNARY_ABS", Unary<map::Abs>},
    {"UNARY_SGN", Unary<map::Sign>},
    {"UNARY_NEG", Unary<map::Neg>},
    {"UNARY_STEP", Unary<Step>},
    {"UNARY_TANH", Unary<map::Tanh>},
    {"UNARY_ELU", Unary<EluOfOne>},
    {"UNARY_RELU", Unary<graph::Relu>},
    {"UNARY_SIGMOID", Unary<map::Sigmoid>},
    {"UNARY_GELU", Unary<GeluTanh>},
    {"UNARY_GELU_QUICK", Unary<GeluQuick>},
    {"UNARY_GELU_ERF", Unary<GeluErf>},
    {"UNARY_SILU", Unary<Silu>},
    {"UNARY_HARDSWISH", Unary<HardSwishOfSix>},
    {"UNARY_HARDSIGMOID", Unary<HardSigmoidOfSix>},
    {"UNARY_EXP", Unary<map::Exp>},
    {"UNARY_EXPM1", Unary<map::Expm1>},
    {"UNARY_SOFTPLUS", Unary<SoftplusOfOne>},
    {"UNARY_XIELU", Xielu},
    {"UNARY_FLOOR", Unary<map::Floor>},
    {"UNARY_CEIL", Unary<map::Ceil>},
    {"UNARY_ROUND", Unary<RoundAway>},
    {"UNARY_TRUNC", Unary<map::Trunc>},
    {"GLU_REGLU", Gated<graph::Relu>},
    {"GLU_GEGLU", Gated<GeluTanh>},
    {"GLU_SWIGLU", Gated<Silu>},
    {"GLU_SWIGLU_OAI", GatedOai},
    {"GLU_SWIGLU_CLAMP", GatedClamped},
    {"GLU_GEGLU_ERF", Gated<GeluErf>},
    {"GLU_GEGLU_QUICK", Gated<GeluQuick>},
};

}  // namespace

std::span<const Operator> ElementwiseOperators() {
    return kOperators;
}

}  // namespace fornax::ggml_frontend

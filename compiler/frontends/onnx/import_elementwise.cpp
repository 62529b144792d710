// Arithmetic, comparisons, logic and activations.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/graph/build/activations.h"

namespace fornax::onnx_frontend {
namespace {

using graph::ScalarFunction;
namespace map = graph::map;

template <ScalarFunction function>
void Unary(Node& node) {
    node.Out(node.builder().Map(function, {node.In(0)}));
}

// Up to version 6 of the operator set the second operand could be lined up with the first's axes
// from `axis` on, where broadcasting lines up the last ones.
Val SecondOperand(Node& node, int64_t axis) {
    const Val b = node.In(1);
    const int64_t rank = node.In(0).rank();
    const Shape shape = b.shape();
    std::vector<Expr> dims(shape.dims().begin(), shape.dims().end());
    for (int64_t next = Builder::Axis(axis, rank) + b.rank(); next < rank; ++next) {
        dims.emplace_back(1);
    }
    return graph::Reshape(b, Shape(std::move(dims)));
}

Val SecondOperand(Node& node) {
    return node.version() < 7 && node.HasAttribute("axis") ? SecondOperand(node, node.Int("axis"))
                                                           : node.In(1);
}

template <ScalarFunction function>
void Binary(Node& node) {
    node.Out(node.builder().Map(function, {node.In(0), SecondOperand(node)}));
}

// For operands the other way round.
template <ScalarFunction function>
void Swapped(Node& node) {
    node.Out(node.builder().Map(function, {SecondOperand(node), node.In(0)}));
}

// Folds any number of operands.
template <ScalarFunction function>
void Variadic(Node& node) {
    Val value = node.In(0);
    for (size_t i = 1; i < node.input_count(); ++i) {
        value = node.builder().Map(function, {value, node.In(i)});
    }
    node.Out(value);
}

void ImportMean(Node& node) {
    node.Out(graph::Widened(node.In(0), [&](Val sum) {
        for (size_t i = 1; i < node.input_count(); ++i) {
            sum = sum + graph::Cast(node.In(i), sum.element());
        }
        return sum / static_cast<double>(node.input_count());
    }));
}

void ImportEqual(Node& node) {
    const Val a = node.In(0), b = node.In(1);
    if (a.element() != ElementType::kString) {
        return Binary<ScalarFunction::kEqual>(node);
    }
    const Shape shapes[] = {a.shape(), b.shape()};
    const Shape shape = node.builder().CommonShape(shapes);
    node.Out(node.builder().HostCall("string_equal", {},
                                     {graph::BroadcastTo(a, shape), graph::BroadcastTo(b, shape)},
                                     {{ElementType::kBool, shape}})[0]);
}

void ImportPow(Node& node) {
    const Val base = node.In(0), exponent = SecondOperand(node);
    const ElementType type = base.element();
    if (graph::IsFloat(type) || !graph::IsFloat(exponent.element())) {
        const ElementType compute = graph::ComputeType(type);
        node.Out(graph::Cast(map::Pow(graph::Cast(base, compute), graph::Cast(exponent, compute)),
                             type));
    } else {
        const Val result = map::Pow(graph::Cast(base, ElementType::kF64),
                                    graph::Cast(exponent, ElementType::kF64));
        node.Out(graph::Cast(result, type));
    }
}

void ImportMod(Node& node) {
    const Val a = node.In(0), b = node.In(1);
    node.Out(node.Int("fmod", 0) != 0 ? map::Rem(a, b) : map::Mod(a, b));
}

void ImportBitShift(Node& node) {
    const std::string direction = node.Text("direction", "");
    if (direction != "LEFT" && direction != "RIGHT") {
        FailInvalid(fmt::format("its direction is \"{}\"", direction));
    }
    const bool left = direction == "LEFT";
    node.Out(left ? map::ShiftLeft(node.In(0), node.In(1))
                  : map::ShiftRight(node.In(0), node.In(1)));
}

void ImportClip(Node& node) {
    const Val x = node.In(0);
    if (node.version() >= 11) {
        node.Out(graph::Clip(x, node.Opt(1), node.Opt(2)));
        return;
    }
    node.Out(graph::Clip(x, node.HasAttribute("min") ? graph::Like(x, node.Float("min", 0)) : Val(),
                         node.HasAttribute("max") ? graph::Like(x, node.Float("max", 0)) : Val()));
}

void ImportWhere(Node& node) {
    node.Out(graph::Where(node.In(0), node.In(1), node.In(2)));
}

void ImportRelu(Node& node) {
    node.Out(graph::Relu(node.In(0)));
}
void ImportLeakyRelu(Node& node) {
    node.Out(graph::LeakyRelu(node.In(0), node.Float("alpha", 0.01F)));
}
void ImportPRelu(Node& node) {
    // Up to version 6 the slopes were those of the channels.
    const bool channels = node.version() < 7 && node.In(0).rank() > 1;
    node.Out(graph::PRelu(node.In(0), channels && !(node.In(1).shape() == Shape{1})
                                          ? SecondOperand(node, 1)
                                          : node.In(1)));
}
void ImportElu(Node& node) {
    node.Out(graph::Elu(node.In(0), node.Float("alpha", 1)));
}
void ImportCelu(Node& node) {
    node.Out(graph::Celu(node.In(0), node.Float("alpha", 1)));
}
void ImportSelu(Node& node) {
    node.Out(graph::Selu(node.In(0), node.Float("alpha", 1.67326319217681884765625),
                         node.Float("gamma", 1.05070102214813232421875)));
}
void ImportSoftplus(Node& node) {
    node.Out(graph::Softplus(node.In(0)));
}
void ImportSoftsign(Node& node) {
    node.Out(graph::Softsign(node.In(0)));
}
void ImportHardSigmoid(Node& node) {
    node.Out(graph::HardSigmoid(node.In(0), node.Float("alpha", 0.2F), node.Float("beta", 0.5)));
}
void ImportHardSwish(Node& node) {
    node.Out(graph::HardSwish(node.In(0)));
}
void ImportSwish(Node& node) {
    node.Out(graph::Swish(node.In(0), node.Float("alpha", 1)));
}
void ImportMish(Node& node) {
    node.Out(graph::Mish(node.In(0)));
}
void ImportGelu(Node& node) {
    node.Out(graph::Gelu(node.In(0), node.Text("approximate", "none") == "tanh"));
}
void ImportThresholdedRelu(Node& node) {
    node.Out(graph::ThresholdedRelu(node.In(0), node.Float("alpha", 1)));
}
void ImportShrink(Node& node) {
    node.Out(graph::Shrink(node.In(0), node.Float("bias", 0), node.Float("lambd", 0.5)));
}
void ImportIsInf(Node& node) {
    node.Out(graph::IsInf(node.In(0), node.Int("detect_negative", 1) != 0,
                          node.Int("detect_positive", 1) != 0));
}

// swish(a) * b
void ImportSwiGlu(Node& node) {
    const Val a = node.In(0), b = node.In(1);
    const ElementType compute = graph::ComputeType(a.element());
    node.Out(graph::Cast(
        graph::Swish(graph::Cast(a, compute), node.Float("alpha", 1)) * graph::Cast(b, compute),
        a.element()));
}

constexpr OperatorEntry kOperators[] = {
    {"Abs", 1, Unary<ScalarFunction::kAbs>},
    {"Acos", 1, Unary<ScalarFunction::kAcos>},
    {"Acosh", 1, Unary<ScalarFunction::kAcosh>},
    {"Add", 2, Binary<ScalarFunction::kAdd>},
    {"And", 2, Binary<ScalarFunction::kAnd>},
    {"Asin", 1, Unary<ScalarFunction::kAsin>},
    {"Asinh", 1, Unary<ScalarFunction::kAsinh>},
    {"Atan", 1, Unary<ScalarFunction::kAtan>},
    {"Atanh", 1, Unary<ScalarFunction::kAtanh>},
    {"BitShift", 2, ImportBitShift},
    {"BitwiseAnd", 2, Binary<ScalarFunction::kAnd>},
    {"BitwiseNot", 1, Unary<ScalarFunction::kNot>},
    {"BitwiseOr", 2, Binary<ScalarFunction::kOr>},
    {"BitwiseXor", 2, Binary<ScalarFunction::kXor>},
    {"Ceil", 1, Unary<ScalarFunction::kCeil>},
    {"Celu", 1, ImportCelu},
    {"Clip", 1, ImportClip},
    {"Cos", 1, Unary<ScalarFunction::kCos>},
    {"Cosh", 1, Unary<ScalarFunction::kCosh>},
    {"Div", 2, Binary<ScalarFunction::kDiv>},
    {"Elu", 1, ImportElu},
    {"Equal", 2, ImportEqual},
    {"Erf", 1, Unary<ScalarFunction::kErf>},
    {"Exp", 1, Unary<ScalarFunction::kExp>},
    {"Floor", 1, Unary<ScalarFunction::kFloor>},
    {"Gelu", 1, ImportGelu},
    {"Greater", 2, Swapped<ScalarFunction::kLess>},
    {"GreaterOrEqual", 2, Swapped<ScalarFunction::kLessEqual>},
    {"HardSigmoid", 1, ImportHardSigmoid},
    {"HardSwish", 1, ImportHardSwish},
    {"IsInf", 1, ImportIsInf},
    {"IsNaN", 1, Unary<ScalarFunction::kIsNan>},
    {"LeakyRelu", 1, ImportLeakyRelu},
    {"Less", 2, Binary<ScalarFunction::kLess>},
    {"LessOrEqual", 2, Binary<ScalarFunction::kLessEqual>},
    {"Log", 1, Unary<ScalarFunction::kLog>},
    {"Max", 1, Variadic<ScalarFunction::kMax>},
    {"Mean", 1, ImportMean},
    {"Min", 1, Variadic<ScalarFunction::kMin>},
    {"Mish", 1, ImportMish},
    {"Mod", 2, ImportMod},
    {"Mul", 2, Binary<ScalarFunction::kMul>},
    {"Neg", 1, Unary<ScalarFunction::kNeg>},
    {"Not", 1, Unary<ScalarFunction::kNot>, 1},
    {"Or", 2, Binary<ScalarFunction::kOr>},
    {"PRelu", 2, ImportPRelu},
    {"Pow", 2, ImportPow},
    {"Reciprocal", 1, Unary<ScalarFunction::kReciprocal>},
    {"Relu", 1, ImportRelu},
    {"Round", 1, Unary<ScalarFunction::kRound>},
    {"Selu", 1, ImportSelu},
    {"Shrink", 1, ImportShrink},
    {"Sigmoid", 1, Unary<ScalarFunction::kSigmoid>},
    {"Sign", 1, Unary<ScalarFunction::kSign>},
    {"Sin", 1, Unary<ScalarFunction::kSin>},
    {"Sinh", 1, Unary<ScalarFunction::kSinh>},
    {"Softplus", 1, ImportSoftplus},
    {"Softsign", 1, ImportSoftsign},
    {"Sqrt", 1, Unary<ScalarFunction::kSqrt>},
    {"Sub", 2, Binary<ScalarFunction::kSub>},
    {"Sum", 1, Variadic<ScalarFunction::kAdd>},
    {"SwiGLU", 2, ImportSwiGlu},
    {"Swish", 1, ImportSwish},
    {"Tan", 1, Unary<ScalarFunction::kTan>},
    {"Tanh", 1, Unary<ScalarFunction::kTanh>},
    {"ThresholdedRelu", 1, ImportThresholdedRelu},
    {"Where", 3, ImportWhere},
    {"Xor", 2, Binary<ScalarFunction::kXor>},
};

}  // namespace

std::span<const OperatorEntry> ElementwiseOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend

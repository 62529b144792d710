// Arithmetic, comparisons, logic: operators of one to three operands that are broadcast.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "compiler/frontends/torch/operator_families.h"
#include "compiler/graph/build/activations.h"

namespace fornax::torch_frontend {
namespace {

using graph::ScalarFunction;
namespace map = graph::map;

// The type that an elementwise result is computed in: narrow floats are widened, and rounded once.
ElementType ComputeFor(Node& node) {
    return graph::ComputeType(node.ResultType().element);
}

template <ScalarFunction function>
void Unary(Node& node) {
    node.Out(node.builder().Map(function, {node.As("self", ComputeFor(node))}));
}

// Functions that are in the type of their operand, whatever it is.
template <ScalarFunction function>
void Plain(Node& node) {
    node.Out(node.builder().Map(function, {node.In("self")}));
}

// Functions that integers are left as they are by.
template <ScalarFunction function>
void Rounding(Node& node) {
    const Val x = node.In("self");
    node.Out(graph::IsFloat(x.element()) ? node.builder().Map(function, {x}) : x);
}

template <ScalarFunction function>
void Binary(Node& node) {
    const ElementType type = ComputeFor(node);
    node.Out(node.builder().Map(function, {node.As("self", type), node.As("other", type)}));
}

// The greater one of two bools is their "or".
template <ScalarFunction function, ScalarFunction of_bools>
void Extreme(Node& node) {
    const ElementType type = ComputeFor(node);
    const bool bools = type == ElementType::kBool;
    node.Out(node.builder().Map(bools ? of_bools : function,
                                {node.As("self", type), node.As("other", type)}));
}

Val Scaled(Node& node, Val x, std::string_view factor) {
    const Operand alpha = node.Number(factor);
    if (!alpha.tensor && (alpha.is_float ? alpha.number == 1 : alpha.integer == 1)) {
        return x;
    }
    if (x.element() == ElementType::kBool) {
        return graph::And(x, ToTensor(node.builder(), alpha, x.element()));
    }
    return x * ToTensor(node.builder(), alpha, x.element());
}

void ImportAdd(Node& node) {
    const ElementType type = ComputeFor(node);
    const Val a = node.As("self", type), b = Scaled(node, node.As("other", type), "alpha");
    node.Out(type == ElementType::kBool ? graph::Or(a, b) : a + b);
}

void ImportSub(Node& node) {
    const ElementType type = ComputeFor(node);
    node.Out(node.As("self", type) - Scaled(node, node.As("other", type), "alpha"));
}

void ImportReverseSub(Node& node) {
    const ElementType type = ComputeFor(node);
    node.Out(node.As("other", type) - Scaled(node, node.As("self", type), "alpha"));
}

void ImportMul(Node& node) {
    const ElementType type = ComputeFor(node);
    const Val a = node.As("self", type), b = node.As("other", type);
    node.Out(type == ElementType::kBool ? graph::And(a, b) : a * b);
}

void ImportDiv(Node& node) {
    const ElementType type = ComputeFor(node);
    const Val a = node.As("self", type), b = node.As("other", type);
    const std::string mode = node.Text("rounding_mode", "");
    if (mode == "floor") {
        node.Out(map::FloorDiv(a, b));
    } else if (mode == "trunc") {
        node.Out(graph::IsFloat(type) ? map::Trunc(a / b) : a / b);
    } else if (mode.empty()) {
        node.Out(a / b);
    } else {
        FailInvalid(fmt::format("its rounding_mode is \"{}\"", mode));
    }
}

void ImportSquare(Node& node) {
    const Val x = node.As("self", ComputeFor(node));
    node.Out(x * x);
}

void ImportFloorDivide(Node& node) {
    const ElementType type = ComputeFor(node);
    node.Out(map::FloorDiv(node.As("self", type), node.As("other", type)));
}

void ImportPow(Node& node) {
    const ElementType type = ComputeFor(node);
    const Val base = node.As("self", type);
    const Operand exponent = node.Number("exponent");
    if (!exponent.tensor && graph::IsFloat(type)) {
        const double power =
            exponent.is_float ? exponent.number : static_cast<double>(exponent.integer);
        if (power == 2) {
            return node.Out(base * base);
        }
        if (power == 1) {
            return node.Out(base);
        }
        if (power == 0.5) {
            return node.Out(map::Sqrt(base));
        }
        if (power == 3) {
            return node.Out(base * base * base);
        }
    }
    node.Out(map::Pow(base, ToTensor(node.builder(), exponent, type)));
}

// Comparisons are in the type that the operands are promoted to.
template <ScalarFunction function, bool swapped = false, bool negated = false>
void Compare(Node& node) {
    const Operand operands[] = {node.Number("self"), node.Number("other")};
    ElementType type = graph::ComputeType(Promote(operands));
    if (type == ElementType::kBool && function != ScalarFunction::kEqual) {
        type = ElementType::kU8;
    }
    Builder& b = node.builder();
    Val x = ToTensor(b, operands[0], type), y = ToTensor(b, operands[1], type);
    if (swapped) {
        std::swap(x, y);
    }
    const Val result = b.Map(function, {x, y});
    node.Out(negated ? graph::Not(result) : result);
}

template <ScalarFunction function>
void Logical(Node& node) {
    node.Out(node.builder().Map(
        function, {node.As("self", ElementType::kBool), node.As("other", ElementType::kBool)}));
}

void ImportLogicalNot(Node& node) {
    node.Out(graph::Not(node.As("self", ElementType::kBool)));
}

void ImportWhere(Node& node) {
    const ElementType type = node.ResultType().element;
    node.Out(graph::Where(node.As("condition", ElementType::kBool), node.As("self", type),
                          node.As("other", type)));
}

void ImportMaskedFill(Node& node) {
    const Val x = node.In("self");
    node.Out(graph::Where(node.As("mask", ElementType::kBool), node.As("value", x.element()), x));
}

void ImportClamp(Node& node) {
    const ElementType given = node.ResultType().element;
    const ElementType type = given == ElementType::kBool ? ElementType::kU8 : given;
    const auto bound = [&](std::string_view name) {
        return node.Has(name) ? node.As(name, type) : Val();
    };
    node.Out(graph::Clip(node.As("self", type), bound("min"), bound("max")));
}

void ImportSign(Node& node) {
    const Val x = node.In("self");
    if (x.element() == ElementType::kBool) {
        return node.Out(x);
    }
    // NaN has the sign 0.
    const Val sign = map::Sign(x);
    node.Out(graph::IsFloat(x.element()) ? graph::Where(map::IsNan(x), graph::Like(x, 0), sign)
                                         : sign);
}

void ImportAbs(Node& node) {
    const Val x = node.In("self");
    node.Out(graph::IsSigned(x.element()) ? map::Abs(x) : x);
}

void ImportNeg(Node& node) {
    node.Out(-node.In("self"));
}

void ImportReciprocal(Node& node) {
    node.Out(map::Reciprocal(node.As("self", ComputeFor(node))));
}

void ImportIsNan(Node& node) {
    const Val x = node.In("self");
    node.Out(graph::IsFloat(x.element()) ? map::IsNan(x)
                                         : node.builder().Full(ElementType::kBool, x.shape(), 0));
}

void ImportIsInf(Node& node) {
    const Val x = node.In("self");
    node.Out(graph::IsFloat(x.element()) ? map::IsInf(x)
                                         : node.builder().Full(ElementType::kBool, x.shape(), 0));
}

template <int base>
void ImportLog(Node& node) {
    const Val x = node.As("self", ComputeFor(node));
    // In f64 where that is the type; else the quotient is rounded once more than torch's.
    const double scale = base == 2 ? 1.4426950408889634074 : 0.43429448190325182765;
    node.Out(map::Log(x) * scale);
}

void ImportExp2(Node& node) {
    node.Out(map::Exp(node.As("self", ComputeFor(node)) * 0.69314718055994530942));
}

void ImportErfc(Node& node) {
    node.Out(1.0 - map::Erf(node.As("self", ComputeFor(node))));
}

void ImportRoundDecimals(Node& node) {
    const Val x = node.As("self", ComputeFor(node));
    const int64_t decimals = node.Int("decimals");
    if (decimals < -300 || decimals > 300) {
        FailInvalid(fmt::format("its decimals are {}", decimals));
    }
    const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
    node.Out(decimals >= 0 ? map::Round(x * scale) / scale : map::Round(x / scale) * scale);
}

void ImportAddc(Node& node, bool divides) {
    const ElementType type = ComputeFor(node);
    const Val a = node.As("tensor1", type), b = node.As("tensor2", type);
    node.Out(node.As("self", type) + node.As("value", type) * (divides ? a / b : a * b));
}

void ImportAddcmul(Node& node) {
    ImportAddc(node, false);
}
void ImportAddcdiv(Node& node) {
    ImportAddc(node, true);
}

void ImportLerp(Node& node) {
    const ElementType type = ComputeFor(node);
    const Val a = node.As("self", type), b = node.As("end", type);
    node.Out(a + node.As("weight", type) * (b - a));
}

constexpr OperatorEntry kOperators[] = {
    {"abs.default", ImportAbs},
    {"acos.default", Unary<ScalarFunction::kAcos>},
    {"acosh.default", Unary<ScalarFunction::kAcosh>},
    {"add.Scalar", ImportAdd},
    {"add.Tensor", ImportAdd},
    {"addcdiv.default", ImportAddcdiv},
    {"addcmul.default", ImportAddcmul},
    {"asin.default", Unary<ScalarFunction::kAsin>},
    {"asinh.default", Unary<ScalarFunction::kAsinh>},
    {"atan.default", Unary<ScalarFunction::kAtan>},
    {"atan2.default", Binary<ScalarFunction::kAtan2>},
    {"atanh.default", Unary<ScalarFunction::kAtanh>},
    {"bitwise_and.Scalar", Binary<ScalarFunction::kAnd>},
    {"bitwise_and.Tensor", Binary<ScalarFunction::kAnd>},
    {"bitwise_left_shift.Tensor", Binary<ScalarFunction::kShiftLeft>},
    {"bitwise_not.default", Plain<ScalarFunction::kNot>},
    {"bitwise_or.Scalar", Binary<ScalarFunction::kOr>},
    {"bitwise_or.Tensor", Binary<ScalarFunction::kOr>},
    {"bitwise_right_shift.Tensor", Binary<ScalarFunction::kShiftRight>},
    {"bitwise_xor.Scalar", Binary<ScalarFunction::kXor>},
    {"bitwise_xor.Tensor", Binary<ScalarFunction::kXor>},
    {"ceil.default", Rounding<ScalarFunction::kCeil>},
    {"clamp.Tensor", ImportClamp},
    {"clamp.default", ImportClamp},
    {"clamp_max.Tensor", ImportClamp},
    {"clamp_max.default", ImportClamp},
    {"clamp_min.Tensor", ImportClamp},
    {"clamp_min.default", ImportClamp},
    {"cos.default", Unary<ScalarFunction::kCos>},
    {"cosh.default", Unary<ScalarFunction::kCosh>},
    {"div.Scalar", ImportDiv},
    {"div.Scalar_mode", ImportDiv},
    {"div.Tensor", ImportDiv},
    {"div.Tensor_mode", ImportDiv},
    {"eq.Scalar", Compare<ScalarFunction::kEqual>},
    {"eq.Tensor", Compare<ScalarFunction::kEqual>},
    {"erf.default", Unary<ScalarFunction::kErf>},
    {"erfc.default", ImportErfc},
    {"exp.default", Unary<ScalarFunction::kExp>},
    {"exp2.default", ImportExp2},
    {"expm1.default", Unary<ScalarFunction::kExpm1>},
    {"floor.default", Rounding<ScalarFunction::kFloor>},
    {"floor_divide.Scalar", ImportFloorDivide},
    {"floor_divide.default", ImportFloorDivide},
    {"fmod.Scalar", Binary<ScalarFunction::kRem>},
    {"fmod.Tensor", Binary<ScalarFunction::kRem>},
    {"ge.Scalar", Compare<ScalarFunction::kLessEqual, true>},
    {"ge.Tensor", Compare<ScalarFunction::kLessEqual, true>},
    {"gt.Scalar", Compare<ScalarFunction::kLess, true>},
    {"gt.Tensor", Compare<ScalarFunction::kLess, true>},
    {"isinf.default", ImportIsInf},
    {"isnan.default", ImportIsNan},
    {"le.Scalar", Compare<ScalarFunction::kLessEqual>},
    {"le.Tensor", Compare<ScalarFunction::kLessEqual>},
    {"lerp.Scalar", ImportLerp},
    {"lerp.Tensor", ImportLerp},
    {"log.default", Unary<ScalarFunction::kLog>},
    {"log10.default", ImportLog<10>},
    {"log1p.default", Unary<ScalarFunction::kLog1p>},
    {"log2.default", ImportLog<2>},
    {"logical_and.default", Logical<ScalarFunction::kAnd>},
    {"logical_not.default", ImportLogicalNot},
    {"logical_or.default", Logical<ScalarFunction::kOr>},
    {"logical_xor.default", Logical<ScalarFunction::kXor>},
    {"lt.Scalar", Compare<ScalarFunction::kLess>},
    {"lt.Tensor", Compare<ScalarFunction::kLess>},
    {"masked_fill.Scalar", ImportMaskedFill},
    {"masked_fill.Tensor", ImportMaskedFill},
    {"maximum.default", Extreme<ScalarFunction::kMax, ScalarFunction::kOr>},
    {"minimum.default", Extreme<ScalarFunction::kMin, ScalarFunction::kAnd>},
    {"mul.Scalar", ImportMul},
    {"mul.Tensor", ImportMul},
    {"ne.Scalar", Compare<ScalarFunction::kEqual, false, true>},
    {"ne.Tensor", Compare<ScalarFunction::kEqual, false, true>},
    {"neg.default", ImportNeg},
    {"pow.Scalar", ImportPow},
    {"pow.Tensor_Scalar", ImportPow},
    {"pow.Tensor_Tensor", ImportPow},
    {"reciprocal.default", ImportReciprocal},
    {"remainder.Scalar", Binary<ScalarFunction::kMod>},
    {"remainder.Scalar_Tensor", Binary<ScalarFunction::kMod>},
    {"remainder.Tensor", Binary<ScalarFunction::kMod>},
    {"round.decimals", ImportRoundDecimals},
    {"round.default", Rounding<ScalarFunction::kRound>},
    {"rsqrt.default", Unary<ScalarFunction::kRsqrt>},
    {"rsub.Scalar", ImportReverseSub},
    {"rsub.Tensor", ImportReverseSub},
    {"sigmoid.default", Unary<ScalarFunction::kSigmoid>},
    {"sign.default", ImportSign},
    {"sin.default", Unary<ScalarFunction::kSin>},
    {"sinh.default", Unary<ScalarFunction::kSinh>},
    {"sqrt.default", Unary<ScalarFunction::kSqrt>},
    {"square.default", ImportSquare},
    {"sub.Scalar", ImportSub},
    {"sub.Tensor", ImportSub},
    {"tan.default", Unary<ScalarFunction::kTan>},
    {"tanh.default", Unary<ScalarFunction::kTanh>},
    {"true_divide.Tensor", ImportDiv},
    {"trunc.default", Rounding<ScalarFunction::kTrunc>},
    {"where.ScalarOther", ImportWhere},
    {"where.ScalarSelf", ImportWhere},
    {"where.self", ImportWhere},
};

}  // namespace

std::span<const OperatorEntry> ArithmeticOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend

// Scalar functions and conversions.
//
// ONNX's arithmetic is there for few types, so operands are cast to a wider one in which the result
// is exact or, for f16 and bf16, f32's, and cast back.
#include <fmt/format.h>

#include "compiler/graph/build/build_error.h"
#include "compiler/graph/export/lowering.h"
#include "compiler/graph/ir/text.h"

namespace fornax::graph {
namespace {

using F = ScalarFunction;

// Operators with one meaning here and there.
std::string_view DirectOperator(F function) {
    switch (function) {
        case F::kNeg:
            return "Neg";
        case F::kAbs:
            return "Abs";
        case F::kSign:
            return "Sign";
        case F::kFloor:
            return "Floor";
        case F::kCeil:
            return "Ceil";
        case F::kRound:
            return "Round";
        case F::kSqrt:
            return "Sqrt";
        case F::kReciprocal:
            return "Reciprocal";
        case F::kExp:
            return "Exp";
        case F::kLog:
            return "Log";
        case F::kSin:
            return "Sin";
        case F::kCos:
            return "Cos";
        case F::kTan:
            return "Tan";
        case F::kAsin:
            return "Asin";
        case F::kAcos:
            return "Acos";
        case F::kAtan:
            return "Atan";
        case F::kSinh:
            return "Sinh";
        case F::kCosh:
            return "Cosh";
        case F::kTanh:
            return "Tanh";
        case F::kAsinh:
            return "Asinh";
        case F::kAcosh:
            return "Acosh";
        case F::kAtanh:
            return "Atanh";
        case F::kErf:
            return "Erf";
        case F::kSigmoid:
            return "Sigmoid";
        case F::kIsNan:
            return "IsNaN";
        case F::kIsInf:
            return "IsInf";
        case F::kAdd:
            return "Add";
        case F::kSub:
            return "Sub";
        case F::kMul:
            return "Mul";
        case F::kDiv:
            return "Div";
        case F::kPow:
            return "Pow";
        case F::kMin:
            return "Min";
        case F::kMax:
            return "Max";
        case F::kEqual:
            return "Equal";
        case F::kLess:
            return "Less";
        case F::kLessEqual:
            return "LessOrEqual";
        default:
            return "";
    }
}

class MapLowering {
  public:
    MapLowering(Lowering& to, ElementType element, ElementType work)
        : to_(to), element_(element), work_(work) {}

    // The operands and the result are of the work type, the result of comparisons bool.
    std::string Run(F function, const Names& x) {
        if (work_ == ElementType::kBool) {
            return OfBools(function, x);
        }
        return IsFloat(work_) ? OfFloats(function, x) : OfIntegers(function, x);
    }

  private:
    std::string Emit(std::string_view op, Names inputs, Lowering::Attributes attributes = {}) {
        return to_.Emit(op, std::move(inputs), std::move(attributes));
    }

    std::string Direct(F function, const Names& x) {
        const std::string_view op = DirectOperator(function);
        if (op.empty()) {
            FailUnsupported(
                fmt::format("{} of {} has no operator of ONNX", Name(function), Name(element_)));
        }
        return Emit(op, x);
    }

    std::string OfBools(F function, const Names& x) {
        switch (function) {
            case F::kNot:
                return Emit("Not", x);
            case F::kAnd:
            case F::kMin:
            case F::kMul:
                return Emit("And", x);
            case F::kOr:
            case F::kMax:
                return Emit("Or", x);
            case F::kXor:
                return Emit("Xor", x);
            case F::kEqual:
                return Emit("Not", {Emit("Xor", x)});
            default:
                FailUnsupported(fmt::format("{} of bool has no operator of ONNX", Name(function)));
        }
    }

    // In f64, where rounding does not show.
    std::string InDouble(const std::string& x, bool is_exp) {
        const std::string wide = to_.CastTo(x, work_, ElementType::kF64);
        const std::string one = to_.Number(ElementType::kF64, 1);
        const std::string result = is_exp ? Emit("Sub", {Emit("Exp", {wide}), one})
                                          : Emit("Log", {Emit("Add", {wide, one})});
        return to_.CastTo(result, ElementType::kF64, work_);
    }

    // The remainder with the dividend's sign becomes that with the divisor's.
    std::string Modulo(const std::string& remainder, const std::string& divisor) {
        const std::string zero = to_.Number(work_, 0);
        const std::string is_other =
            Emit("Xor", {Emit("Less", {remainder, zero}), Emit("Less", {divisor, zero})});
        const std::string is_inexact = Emit("Not", {Emit("Equal", {remainder, zero})});
        return Emit("Where", {Emit("And", {is_other, is_inexact}),
                              Emit("Add", {remainder, divisor}), remainder});
    }

    std::string OfFloats(F function, const Names& x) {
        switch (function) {
            case F::kRsqrt:
                return Emit("Reciprocal", {Emit("Sqrt", x)});
            case F::kExpm1:
                return InDouble(x[0], true);
            case F::kLog1p:
                return InDouble(x[0], false);
            case F::kTrunc:
                return Emit("Mul", {Emit("Sign", x), Emit("Floor", {Emit("Abs", x)})});
            case F::kFloorDiv:
                return Emit("Floor", {Emit("Div", x)});
            case F::kRem:
                return Emit("Mod", x, {{"fmod", int64_t{1}}});
            case F::kMod:
                return Modulo(Emit("Mod", x, {{"fmod", int64_t{1}}}), x[1]);
            default:
                return Direct(function, x);
        }
    }

    // A quotient or remainder, 0 where the divisor is.
    std::string Divide(F function, const Names& x) {
        const std::string zero = to_.Integer(work_, 0);
        const std::string is_zero = Emit("Equal", {x[1], zero});
        const std::string divisor = Emit("Where", {is_zero, to_.Integer(work_, 1), x[1]});
        std::string result;
        if (function == F::kDiv) {
            result = Emit("Div", {x[0], divisor});
        } else if (function == F::kRem) {
            result = Emit("Mod", {x[0], divisor}, {{"fmod", int64_t{1}}});
        } else {
            result = Emit("Mod", {x[0], divisor});  // with the divisor's sign
            if (function == F::kFloorDiv) {
                result = Emit("Div", {Emit("Sub", {x[0], result}), divisor});
            }
        }
        return Emit("Where", {is_zero, zero, result});
    }

    std::string Shift(F function, const Names& x) {
        if (BitsOf(element_) > 32) {
            FailUnsupported(fmt::format("{} of {} is not covered", Name(function), Name(element_)));
        }
        // Counts are unsigned: negative ones are great. Shifts by the width or more give what
        // shifts by 32 of the wider type give.
        const std::string most = to_.Integer(work_, 32);
        const std::string is_negative = Emit("Less", {x[1], to_.Integer(work_, 0)});
        const std::string count =
            to_.CastTo(Emit("Where", {is_negative, most, Emit("Min", {x[1], most})}), work_,
                       ElementType::kU64);
        const std::string power =
            to_.CastTo(Emit("BitShift", {to_.Integer(ElementType::kU64, 1), count},
                            {{"direction", std::string("LEFT")}}),
                       ElementType::kU64, work_);
        if (function == F::kShiftLeft) {
            return Emit("Mul", {x[0], power});
        }
        return Emit("Div", {Emit("Sub", {x[0], Emit("Mod", {x[0], power})}), power});
    }

    std::string OfIntegers(F function, const Names& x) {
        switch (function) {
            case F::kFloor:
            case F::kCeil:
            case F::kRound:
            case F::kTrunc:
                return x[0];
            case F::kDiv:
            case F::kFloorDiv:
            case F::kRem:
            case F::kMod:
                return Divide(function, x);
            case F::kAnd:
                return Emit("BitwiseAnd", x);
            case F::kOr:
                return Emit("BitwiseOr", x);
            case F::kXor:
                return Emit("BitwiseXor", x);
            case F::kNot:
                return Emit("BitwiseNot", x);
            case F::kShiftLeft:
            case F::kShiftRight:
                return Shift(function, x);
            case F::kNeg:
            case F::kAbs:
            case F::kSign:
            case F::kAdd:
            case F::kSub:
            case F::kMul:
            case F::kMin:
            case F::kMax:
            case F::kEqual:
            case F::kLess:
            case F::kLessEqual:
                return Direct(function, x);
            default:
                FailUnsupported(fmt::format("{} of {} has no operator of ONNX", Name(function),
                                            Name(element_)));
        }
    }

    Lowering& to_;
    const ElementType element_, work_;
};

}  // namespace

ElementType WorkType(ElementType element) {
    switch (element) {
        case ElementType::kBool:
            return ElementType::kBool;
        case ElementType::kF16:
        case ElementType::kBF16:
        case ElementType::kF32:
            return ElementType::kF32;
        case ElementType::kF64:
            return ElementType::kF64;
        case ElementType::kI8:
        case ElementType::kI16:
        case ElementType::kI32:
        case ElementType::kI64:
        case ElementType::kU8:
        case ElementType::kU16:
        case ElementType::kU32:
            return ElementType::kI64;
        default:
            FailUnsupported(fmt::format("arithmetic of {} is not covered", Name(element)));
    }
}

std::string Lowering::Choose(const std::string& condition,
                             const std::string& a,
                             const std::string& b,
                             ElementType element) {
    const ElementType work = element == ElementType::kBool ? ElementType::kI32 : WorkType(element);
    const std::string chosen =
        Emit("Where", {condition, CastTo(a, element, work), CastTo(b, element, work)});
    return CastTo(chosen, work, element);
}

Names LowerMap(Lowering& to, const Node& node, const op::Map& map) {
    const bool is_select = map.function == F::kSelect;
    const ElementType element = to.TypeOf(node.operands[is_select ? 1 : 0]).element;
    const ElementType result = to.TypeOf(node.results[0]).element;
    if (is_select) {
        return {to.Choose(to.NameOf(node.operands[0]), to.NameOf(node.operands[1]),
                          to.NameOf(node.operands[2]), element)};
    }
    const ElementType work = WorkType(element);
    Names operands;
    for (const ValueId operand : node.operands) {
        operands.push_back(to.CastTo(to.NameOf(operand), to.TypeOf(operand).element, work));
    }
    const std::string value = MapLowering(to, element, work).Run(map.function, operands);
    const bool is_bool = result == ElementType::kBool;
    return {is_bool ? value : to.CastTo(value, work, result)};
}

Names LowerCast(Lowering& to, const Node& node, const op::Cast& cast) {
    const ElementType from = to.TypeOf(node.operands[0]).element;
    const std::string x = to.NameOf(node.operands[0]);
    const bool can_overflow = BitsOf(cast.to) < BitsOf(from) || !IsFloat(from);
    if (IsFloat(cast.to) && can_overflow &&
        (cast.rounding != Rounding::kNearestEven ||
         (cast.overflow != Overflow::kSpecial && IsFloat(from)))) {
        FailUnsupported(fmt::format("{} is not covered", ToText(Operation(cast))));
    }
    WorkType(from);  // refuses types that ONNX has and onnxruntime does not convert
    WorkType(cast.to);
    if (!IsFloat(from) || !IsInteger(cast.to)) {
        return {to.CastTo(x, from, cast.to)};
    }
    // Truncates, saturates and makes 0 of NaN.
    constexpr ElementType kWide = ElementType::kF64;
    const std::string wide = to.CastTo(x, from, kWide);
    const std::string number =
        to.Emit("Where", {to.Emit("IsNaN", {wide}), to.Number(kWide, 0), wide});
    const double least = NeutralElement(Combine::kMax, cast.to).ToDouble(cast.to);
    const double greatest = NeutralElement(Combine::kMin, cast.to).ToDouble(cast.to);
    if (BitsOf(cast.to) == 64) {
        // 2^63 - 1 is no f64: numbers from 2^63 on are taken out before they are converted.
        const std::string is_great =
            to.Emit("Not", {to.Emit("Less", {number, to.Number(kWide, greatest)})});
        const std::string low = to.Emit("Max", {number, to.Number(kWide, least)});
        const std::string safe = to.Emit("Where", {is_great, to.Number(kWide, 0), low});
        return {to.Emit(
            "Where", {is_great, to.Integer(cast.to, INT64_MAX), to.CastTo(safe, kWide, cast.to)})};
    }
    const std::string within = to.Emit(
        "Min", {to.Emit("Max", {number, to.Number(kWide, least)}), to.Number(kWide, greatest)});
    return {to.CastTo(to.CastTo(within, kWide, ElementType::kI64), ElementType::kI64, cast.to)};
}

}  // namespace fornax::graph

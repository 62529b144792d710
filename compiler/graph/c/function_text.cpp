// Scalar functions and combinations as expressions of C.
#include <cassert>

#include <fmt/format.h>

#include "compiler/graph/c/element_text.h"

namespace fornax::graph::c {
namespace {

// The function of <math.h> for double, if the function is one of its.
std::string_view LibraryName(ScalarFunction function) {
    switch (function) {
        case ScalarFunction::kAbs:
            return "fabs";
        case ScalarFunction::kFloor:
            return "floor";
        case ScalarFunction::kCeil:
            return "ceil";
        case ScalarFunction::kRound:
            return "nearbyint";
        case ScalarFunction::kTrunc:
            return "trunc";
        case ScalarFunction::kSqrt:
            return "sqrt";
        case ScalarFunction::kExp:
            return "exp";
        case ScalarFunction::kExpm1:
            return "expm1";
        case ScalarFunction::kLog:
            return "log";
        case ScalarFunction::kLog1p:
            return "log1p";
        case ScalarFunction::kSin:
            return "sin";
        case ScalarFunction::kCos:
            return "cos";
        case ScalarFunction::kTan:
            return "tan";
        case ScalarFunction::kAsin:
            return "asin";
        case ScalarFunction::kAcos:
            return "acos";
        case ScalarFunction::kAtan:
            return "atan";
        case ScalarFunction::kSinh:
            return "sinh";
        case ScalarFunction::kCosh:
            return "cosh";
        case ScalarFunction::kTanh:
            return "tanh";
        case ScalarFunction::kAsinh:
            return "asinh";
        case ScalarFunction::kAcosh:
            return "acosh";
        case ScalarFunction::kAtanh:
            return "atanh";
        case ScalarFunction::kErf:
            return "erf";
        case ScalarFunction::kRem:
            return "fmod";
        case ScalarFunction::kPow:
            return "pow";
        case ScalarFunction::kAtan2:
            return "atan2";
        default:
            return "";
    }
}

// The C operator of two operands, if the function is one for all types that have it.
std::string_view OperatorOf(ScalarFunction function) {
    switch (function) {
        case ScalarFunction::kAdd:
            return "+";
        case ScalarFunction::kSub:
            return "-";
        case ScalarFunction::kMul:
            return "*";
        case ScalarFunction::kAnd:
            return "&";
        case ScalarFunction::kOr:
            return "|";
        case ScalarFunction::kXor:
            return "^";
        case ScalarFunction::kEqual:
            return "==";
        case ScalarFunction::kLess:
            return "<";
        case ScalarFunction::kLessEqual:
            return "<=";
        default:
            return "";
    }
}

std::string FloatFunction(ScalarFunction function,
                          bool is_double,
                          const std::string& a,
                          const std::string& b) {
    const std::string_view suffix = is_double ? "" : "f";
    const std::string_view type = is_double ? "double" : "float";
    switch (function) {
        case ScalarFunction::kNeg:
            return fmt::format("-{}", a);
        case ScalarFunction::kSign:
            return fmt::format("({} > 0 ? 1 : {} < 0 ? -1 : {})", a, a, a);
        case ScalarFunction::kRsqrt:
            return is_double ? fmt::format("1 / sqrt({})", a)
                             : fmt::format("(float)(1 / sqrt((double){}))", a);
        case ScalarFunction::kReciprocal:
            return fmt::format("1 / {}", a);
        case ScalarFunction::kSigmoid:
            return fmt::format("fx_sigmoid_{}({})", type, a);
        case ScalarFunction::kIsNan:
            return fmt::format("isnan({}) != 0", a);
        case ScalarFunction::kIsInf:
            return fmt::format("isinf({}) != 0", a);
        case ScalarFunction::kDiv:
            return fmt::format("{} / {}", a, b);
        case ScalarFunction::kFloorDiv:
            return fmt::format("({})fx_floor_quotient({}, {})", type, a, b);
        case ScalarFunction::kMod:
            return fmt::format("({})fx_modulo({}, {})", type, a, b);
        case ScalarFunction::kMin:
            return fmt::format("fx_least_{}({}, {})", type, a, b);
        case ScalarFunction::kMax:
            return fmt::format("fx_greatest_{}({}, {})", type, a, b);
        default:
            break;
    }
    const std::string_view name = LibraryName(function);
    assert(!name.empty());
    return ArgumentCount(function) == 2 ? fmt::format("{}{}({}, {})", name, suffix, a, b)
                                        : fmt::format("{}{}({})", name, suffix, a);
}

std::string IntegerFunction(ScalarFunction function,
                            ElementType type,
                            const std::string& a,
                            const std::string& b) {
    const bool is_signed = IsSigned(type);
    const std::string_view kind = is_signed ? "signed" : "unsigned";
    const std::string_view wide = is_signed ? "int64_t" : "uint64_t";
    switch (function) {
        case ScalarFunction::kNeg:
            return fmt::format("({})-({}){}", CTypeOf(type), wide, a);
        case ScalarFunction::kAbs:
            return is_signed ? fmt::format("({} < 0 ? -(int64_t){} : {})", a, a, a) : a;
        case ScalarFunction::kSign:
            return is_signed ? fmt::format("({} > 0) - ({} < 0)", a, a) : fmt::format("{} != 0", a);
        case ScalarFunction::kNot:
            return fmt::format("~{}", a);
        case ScalarFunction::kPopCount:
            return fmt::format("fx_popcount((uint64_t){} << {})", a, 64 - BitsOf(type));
        case ScalarFunction::kDiv:
            return fmt::format("fx_div_{}({}, {})", kind, a, b);
        case ScalarFunction::kFloorDiv:
            return is_signed ? fmt::format("fx_floor_div({}, {})", a, b)
                             : fmt::format("fx_div_unsigned({}, {})", a, b);
        case ScalarFunction::kRem:
            return fmt::format("fx_rem_{}({}, {})", kind, a, b);
        case ScalarFunction::kMod:
            return is_signed ? fmt::format("fx_floor_mod({}, {})", a, b)
                             : fmt::format("fx_rem_unsigned({}, {})", a, b);
        case ScalarFunction::kPow:
            return fmt::format("fx_power({}, {}, {})", a, b, is_signed ? 1 : 0);
        case ScalarFunction::kMin:
            return fmt::format("({} < {} ? {} : {})", b, a, b, a);
        case ScalarFunction::kMax:
            return fmt::format("({} < {} ? {} : {})", a, b, b, a);
        case ScalarFunction::kShiftLeft:
            return fmt::format("fx_shift_left({}, {}, {})", a, b, BitsOf(type));
        case ScalarFunction::kShiftRight:
            return fmt::format("fx_shift_right_{}({}, {}, {})", kind, a, b, BitsOf(type));
        default:
            assert(false);
            return a;
    }
}

}  // namespace

std::string MapText(ScalarFunction function,
                    ElementType type,
                    const std::string& a,
                    const std::string& b,
                    const std::string& c) {
    if (function == ScalarFunction::kSelect) {
        return fmt::format("{} ? {} : {}", a, b, c);
    }
    if (type == ElementType::kBool && function == ScalarFunction::kNot) {
        return fmt::format("!{}", a);
    }
    if (const std::string_view symbol = OperatorOf(function); !symbol.empty()) {
        const std::string text = fmt::format("{} {} {}", a, symbol, b);
        // Products of u16 are ints, which may not overflow without -fwrapv; wider ones are exact.
        const bool is_bool = ResultType(function, type) == ElementType::kBool;
        return is_bool || IsFloat(type) ? text : WrapText(type, text);
    }
    if (IsFloat(type)) {
        return FloatFunction(function, type == ElementType::kF64, a, b);
    }
    return WrapText(type, IntegerFunction(function, type, a, b));
}

std::string CombineText(Combine combine,
                        ElementType type,
                        const std::string& a,
                        const std::string& b) {
    ScalarFunction function = ScalarFunction::kAdd;
    switch (combine) {
        case Combine::kReplace:
            return b;
        case Combine::kSum:
            break;
        case Combine::kProduct:
            function = ScalarFunction::kMul;
            break;
        case Combine::kMin:
            function = ScalarFunction::kMin;
            break;
        case Combine::kMax:
            function = ScalarFunction::kMax;
            break;
        case Combine::kAnd:
            function = ScalarFunction::kAnd;
            break;
        case Combine::kOr:
            function = ScalarFunction::kOr;
            break;
        case Combine::kXor:
            function = ScalarFunction::kXor;
            break;
    }
    return MapText(function, type, a, b, "");
}

}  // namespace fornax::graph::c

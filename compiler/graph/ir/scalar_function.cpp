// The values of the scalar functions and combinations: what kernels are tested against.
#include "compiler/graph/ir/scalar_function.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

namespace fornax::graph {
namespace {

enum class ResultRule : uint8_t { kSame, kBool, kSecond };

struct FunctionInfo {
    const char* name;
    uint8_t arguments;
    ResultRule result;
};

constexpr FunctionInfo kFunctions[] = {
#define FORNAX_SCALAR(name, text, arguments, result) {text, arguments, ResultRule::k##result},
#include "compiler/graph/ir/scalar_functions.def"
#undef FORNAX_SCALAR
};
static_assert(std::size(kFunctions) == static_cast<size_t>(kLastScalarFunction) + 1);

constexpr std::array<const char*, static_cast<size_t>(kLastCombine) + 1> kCombineNames = {
    "replace", "sum", "product", "min", "max", "and", "or", "xor"};

const FunctionInfo& Info(ScalarFunction function) {
    return kFunctions[static_cast<size_t>(function)];
}

bool IsNumeric(ElementType type) {
    return IsInteger(type) || IsFloat(type);
}

// NaN where one argument is NaN.
double Least(double a, double b) {
    return std::isnan(a) || a < b ? a : b;
}

double Greatest(double a, double b) {
    return std::isnan(a) || a > b ? a : b;
}

// The greatest whole number that is at most a / b. The quotient may have been rounded up to a
// whole number, which the exact remainder tells.
double FloorQuotient(double a, double b) {
    const double quotient = std::floor(a / b);
    const double remainder = std::fma(-quotient, b, a);
    return (remainder < 0 && b > 0) || (remainder > 0 && b < 0) ? quotient - 1 : quotient;
}

// The remainder with the sign of the divisor, zeros included.
double Modulo(double a, double b) {
    const double remainder = std::fmod(a, b);
    if (remainder == 0) {
        return std::copysign(0.0, b);
    }
    return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double Sigmoid(double x) {
    // The form is chosen whose exponential does not overflow.
    const double e = std::exp(-std::abs(x));
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

double SignOf(double x) {
    return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
}

double EvaluateFloat(ScalarFunction function, double a, double b) {
    switch (function) {
        case ScalarFunction::kNeg:
            return -a;
        case ScalarFunction::kAbs:
            return std::abs(a);
        case ScalarFunction::kSign:
            return SignOf(a);
        case ScalarFunction::kFloor:
            return std::floor(a);
        case ScalarFunction::kCeil:
            return std::ceil(a);
        case ScalarFunction::kRound:
            return std::nearbyint(a);
        case ScalarFunction::kTrunc:
            return std::trunc(a);
        case ScalarFunction::kSqrt:
            return std::sqrt(a);
        case ScalarFunction::kRsqrt:
            return 1 / std::sqrt(a);
        case ScalarFunction::kReciprocal:
            return 1 / a;
        case ScalarFunction::kExp:
            return std::exp(a);
        case ScalarFunction::kExpm1:
            return std::expm1(a);
        case ScalarFunction::kLog:
            return std::log(a);
        case ScalarFunction::kLog1p:
            return std::log1p(a);
        case ScalarFunction::kSin:
            return std::sin(a);
        case ScalarFunction::kCos:
            return std::cos(a);
        case ScalarFunction::kTan:
            return std::tan(a);
        case ScalarFunction::kAsin:
            return std::asin(a);
        case ScalarFunction::kAcos:
            return std::acos(a);
        case ScalarFunction::kAtan:
            return std::atan(a);
        case ScalarFunction::kSinh:
            return std::sinh(a);
        case ScalarFunction::kCosh:
            return std::cosh(a);
        case ScalarFunction::kTanh:
            return std::tanh(a);
        case ScalarFunction::kAsinh:
            return std::asinh(a);
        case ScalarFunction::kAcosh:
            return std::acosh(a);
        case ScalarFunction::kAtanh:
            return std::atanh(a);
        case ScalarFunction::kErf:
            return std::erf(a);
        case ScalarFunction::kSigmoid:
            return Sigmoid(a);
        case ScalarFunction::kAdd:
            return a + b;
        case ScalarFunction::kSub:
            return a - b;
        case ScalarFunction::kMul:
            return a * b;
        case ScalarFunction::kDiv:
            return a / b;
        case ScalarFunction::kFloorDiv:
            return FloorQuotient(a, b);
        case ScalarFunction::kRem:
            return std::fmod(a, b);
        case ScalarFunction::kMod:
            return Modulo(a, b);
        case ScalarFunction::kPow:
            return std::pow(a, b);
        case ScalarFunction::kMin:
            return Least(a, b);
        case ScalarFunction::kMax:
            return Greatest(a, b);
        case ScalarFunction::kAtan2:
            return std::atan2(a, b);
        default:
            assert(false);
            return std::numeric_limits<double>::quiet_NaN();
    }
}

// Repeated squaring, modulo 2^64. Of negative exponents only 1 and -1 have powers that are not 0.
uint64_t IntegerPower(int64_t base, int64_t exponent, bool is_signed) {
    if (is_signed && exponent < 0) {
        if (base == -1) {
            return (exponent & 1) != 0 ? ~uint64_t{0} : 1;
        }
        return base == 1 ? 1 : 0;
    }
    auto square = static_cast<uint64_t>(base);
    uint64_t power = 1;
    for (auto bits = static_cast<uint64_t>(exponent); bits != 0; bits >>= 1) {
        if ((bits & 1) != 0) {
            power *= square;
        }
        square *= square;
    }
    return power;
}

// Unsigned division and its relatives, where rounding down and towards zero are one.
uint64_t DivideUnsigned(ScalarFunction function, uint64_t a, uint64_t b) {
    if (b == 0) {
        return 0;
    }
    const bool quotient = function == ScalarFunction::kDiv || function == ScalarFunction::kFloorDiv;
    return quotient ? a / b : a % b;
}

uint64_t DivideSigned(ScalarFunction function, int64_t a, int64_t b) {
    if (b == 0) {
        return 0;
    }
    if (b == -1) {  // the least number has no quotient in its type: it wraps
        const bool quotient =
            function == ScalarFunction::kDiv || function == ScalarFunction::kFloorDiv;
        return quotient ? -static_cast<uint64_t>(a) : 0;
    }
    const int64_t quotient = a / b, remainder = a % b;
    const bool adjust = remainder != 0 && (remainder < 0) != (b < 0);
    switch (function) {
        case ScalarFunction::kDiv:
            return static_cast<uint64_t>(quotient);
        case ScalarFunction::kFloorDiv:
            return static_cast<uint64_t>(adjust ? quotient - 1 : quotient);
        case ScalarFunction::kRem:
            return static_cast<uint64_t>(remainder);
        default:
            return static_cast<uint64_t>(adjust ? remainder + b : remainder);
    }
}

uint64_t Shift(ScalarFunction function, ElementType type, int64_t value, int64_t amount) {
    const auto distance = static_cast<uint64_t>(amount);
    const bool all = distance >= BitsOf(type);
    if (function == ScalarFunction::kShiftLeft) {
        return all ? 0 : static_cast<uint64_t>(value) << distance;
    }
    if (!IsSigned(type)) {
        return all ? 0 : static_cast<uint64_t>(value) >> distance;
    }
    return static_cast<uint64_t>(value >> (all ? 63 : distance));
}

bool IntegerLess(ElementType type, int64_t a, int64_t b) {
    return type == ElementType::kU64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

// The low bits of the result are right; the caller wraps it to the type.
uint64_t EvaluateInteger(ScalarFunction function, ElementType type, int64_t a, int64_t b) {
    const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
    const bool negative = IsSigned(type) && a < 0;
    switch (function) {
        case ScalarFunction::kNeg:
            return -ua;
        case ScalarFunction::kAbs:
            return negative ? -ua : ua;
        case ScalarFunction::kSign:
            return negative ? ~uint64_t{0} : a != 0 ? 1 : 0;
        case ScalarFunction::kNot:
            return ~ua;
        case ScalarFunction::kPopCount: {
            const uint32_t bits = BitsOf(type);
            return static_cast<uint64_t>(std::popcount(ua << (64 - bits)));
        }
        case ScalarFunction::kAdd:
            return ua + ub;
        case ScalarFunction::kSub:
            return ua - ub;
        case ScalarFunction::kMul:
            return ua * ub;
        case ScalarFunction::kDiv:
        case ScalarFunction::kFloorDiv:
        case ScalarFunction::kRem:
        case ScalarFunction::kMod:
            return IsSigned(type) ? DivideSigned(function, a, b) : DivideUnsigned(function, ua, ub);
        case ScalarFunction::kPow:
            return IntegerPower(a, b, IsSigned(type));
        case ScalarFunction::kMin:
            return IntegerLess(type, b, a) ? ub : ua;
        case ScalarFunction::kMax:
            return IntegerLess(type, a, b) ? ub : ua;
        case ScalarFunction::kAnd:
            return ua & ub;
        case ScalarFunction::kOr:
            return ua | ub;
        case ScalarFunction::kXor:
            return ua ^ ub;
        case ScalarFunction::kShiftLeft:
        case ScalarFunction::kShiftRight:
            return Shift(function, type, a, b);
        default:
            assert(false);
            return 0;
    }
}

bool EvaluateComparison(ScalarFunction function,
                        ElementType type,
                        const Scalar& a,
                        const Scalar& b) {
    if (IsFloat(type)) {
        return function == ScalarFunction::kEqual  ? a.number == b.number
               : function == ScalarFunction::kLess ? a.number < b.number
                                                   : a.number <= b.number;
    }
    return function == ScalarFunction::kEqual  ? a.integer == b.integer
           : function == ScalarFunction::kLess ? IntegerLess(type, a.integer, b.integer)
                                               : !IntegerLess(type, b.integer, a.integer);
}

}  // namespace

std::string_view Name(ScalarFunction function) {
    return Info(function).name;
}

std::optional<ScalarFunction> ScalarFunctionByName(std::string_view name) {
    for (size_t i = 0; i < std::size(kFunctions); ++i) {
        if (kFunctions[i].name == name) {
            return static_cast<ScalarFunction>(i);
        }
    }
    return std::nullopt;
}

size_t ArgumentCount(ScalarFunction function) {
    return Info(function).arguments;
}

bool Accepts(ScalarFunction function, ElementType type) {
    switch (function) {
        case ScalarFunction::kEqual:
        case ScalarFunction::kSelect:
            return type != ElementType::kString;
        case ScalarFunction::kNot:
        case ScalarFunction::kAnd:
        case ScalarFunction::kOr:
        case ScalarFunction::kXor:
            return type == ElementType::kBool || IsInteger(type);
        case ScalarFunction::kPopCount:
        case ScalarFunction::kShiftLeft:
        case ScalarFunction::kShiftRight:
            return IsInteger(type);
        case ScalarFunction::kNeg:
        case ScalarFunction::kAbs:
        case ScalarFunction::kSign:
        case ScalarFunction::kAdd:
        case ScalarFunction::kSub:
        case ScalarFunction::kMul:
        case ScalarFunction::kDiv:
        case ScalarFunction::kFloorDiv:
        case ScalarFunction::kRem:
        case ScalarFunction::kMod:
        case ScalarFunction::kPow:
        case ScalarFunction::kMin:
        case ScalarFunction::kMax:
        case ScalarFunction::kLess:
        case ScalarFunction::kLessEqual:
            return IsNumeric(type);
        default:
            return IsFloat(type);
    }
}

ElementType ResultType(ScalarFunction function, ElementType type) {
    return Info(function).result == ResultRule::kBool ? ElementType::kBool : type;
}

bool IsTranscendental(ScalarFunction function) {
    switch (function) {
        case ScalarFunction::kExp:
        case ScalarFunction::kExpm1:
        case ScalarFunction::kLog:
        case ScalarFunction::kLog1p:
        case ScalarFunction::kSin:
        case ScalarFunction::kCos:
        case ScalarFunction::kTan:
        case ScalarFunction::kAsin:
        case ScalarFunction::kAcos:
        case ScalarFunction::kAtan:
        case ScalarFunction::kSinh:
        case ScalarFunction::kCosh:
        case ScalarFunction::kTanh:
        case ScalarFunction::kAsinh:
        case ScalarFunction::kAcosh:
        case ScalarFunction::kAtanh:
        case ScalarFunction::kErf:
        case ScalarFunction::kSigmoid:
        case ScalarFunction::kPow:
        case ScalarFunction::kAtan2:
            return true;
        default:
            return false;
    }
}

Scalar EvaluateScalar(ScalarFunction function,
                      ElementType type,
                      std::span<const Scalar> arguments) {
    assert(arguments.size() == ArgumentCount(function) && Accepts(function, type));
    const Scalar& a = arguments[0];
    const Scalar& b = arguments.size() > 1 ? arguments[1] : a;
    switch (function) {
        case ScalarFunction::kSelect:
            return a.integer != 0 ? b : arguments[2];
        case ScalarFunction::kEqual:
        case ScalarFunction::kLess:
        case ScalarFunction::kLessEqual:
            return Scalar::Integer(EvaluateComparison(function, type, a, b) ? 1 : 0);
        case ScalarFunction::kIsNan:
            return Scalar::Integer(std::isnan(a.number) ? 1 : 0);
        case ScalarFunction::kIsInf:
            return Scalar::Integer(std::isinf(a.number) ? 1 : 0);
        default:
            break;
    }
    if (IsFloat(type)) {
        return Scalar::Float(RoundToType(EvaluateFloat(function, a.number, b.number), type));
    }
    const uint64_t value = EvaluateInteger(function, type, a.integer, b.integer);
    if (type == ElementType::kBool) {
        return Scalar::Integer(static_cast<int64_t>(value & 1));  // of ~1 the low bit
    }
    return ConvertScalar(Scalar::Integer(static_cast<int64_t>(value)), ElementType::kI64, type);
}

std::string_view Name(Combine combine) {
    return kCombineNames[static_cast<size_t>(combine)];
}

std::optional<Combine> CombineByName(std::string_view name) {
    for (size_t i = 0; i < kCombineNames.size(); ++i) {
        if (kCombineNames[i] == name) {
            return static_cast<Combine>(i);
        }
    }
    return std::nullopt;
}

namespace {

// The greatest or least number of the type, infinities included.
Scalar Extreme(ElementType type, bool greatest) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (IsFloat(type)) {
        const double infinity = greatest ? kInfinity : -kInfinity;
        const double special = RoundToType(infinity, type);
        if (std::isinf(special)) {
            return Scalar::Float(special);
        }
        if (type == ElementType::kF8E8M0 && !greatest) {  // it has no negative numbers
            return Scalar::Float(RoundToType(0, type, Overflow::kSaturate));
        }
        return Scalar::Float(RoundToType(infinity, type, Overflow::kSaturate));
    }
    const uint32_t bits = BitsOf(type);
    if (!IsSigned(type)) {
        return Scalar::Integer(greatest ? static_cast<int64_t>(~uint64_t{0} >> (64 - bits))
                                        : int64_t{0});
    }
    const int64_t least = INT64_MIN >> (64 - bits);
    return Scalar::Integer(greatest ? ~least : least);
}

}  // namespace

Scalar NeutralElement(Combine combine, ElementType type) {
    assert(Accepts(combine, type) && combine != Combine::kReplace);
    const auto number = [&](int value) {
        return IsFloat(type) ? Scalar::Float(value) : Scalar::Integer(value);
    };
    switch (combine) {
        case Combine::kProduct:
            return number(1);
        case Combine::kMin:
            return Extreme(type, true);
        case Combine::kMax:
            return Extreme(type, false);
        case Combine::kAnd:
            return type == ElementType::kBool
                       ? Scalar::Integer(1)
                       : ConvertScalar(Scalar::Integer(-1), ElementType::kI64, type);
        default:
            return number(0);
    }
}

bool Accepts(Combine combine, ElementType type) {
    switch (combine) {
        case Combine::kReplace:
            return false;  // it needs no arithmetic, and only scatters have it
        case Combine::kAnd:
        case Combine::kOr:
        case Combine::kXor:
            return type == ElementType::kBool || IsInteger(type);
        default:
            return IsNumeric(type);
    }
}

Scalar EvaluateCombine(Combine combine, ElementType type, const Scalar& a, const Scalar& b) {
    const std::array<Scalar, 2> arguments = {a, b};
    switch (combine) {
        case Combine::kReplace:
            break;
        case Combine::kSum:
            return EvaluateScalar(ScalarFunction::kAdd, type, arguments);
        case Combine::kProduct:
            return EvaluateScalar(ScalarFunction::kMul, type, arguments);
        case Combine::kMin:
            return EvaluateScalar(ScalarFunction::kMin, type, arguments);
        case Combine::kMax:
            return EvaluateScalar(ScalarFunction::kMax, type, arguments);
        case Combine::kAnd:
            return EvaluateScalar(ScalarFunction::kAnd, type, arguments);
        case Combine::kOr:
            return EvaluateScalar(ScalarFunction::kOr, type, arguments);
        case Combine::kXor:
            return EvaluateScalar(ScalarFunction::kXor, type, arguments);
    }
    return b;
}

}  // namespace fornax::graph

// Element types: their names and sizes, and conversions between them and numbers.
//
// Narrow floats follow IEEE 754, the OCP 8-bit and microscaling specifications, and ONNX, whose
// Cast operator says what saturates.
#include "compiler/graph/ir/element_type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

namespace fornax::graph {
namespace {

enum class Family : uint8_t { kBool, kSigned, kUnsigned, kFloat, kString };

struct TypeInfo {
    const char* name;
    Family family;
    uint8_t bits;
    uint8_t bytes;
};

constexpr std::array<TypeInfo, static_cast<size_t>(kLastElementType) + 1> kTypes = {{
    {"bool", Family::kBool, 1, 1},      {"i2", Family::kSigned, 2, 1},
    {"i4", Family::kSigned, 4, 1},      {"i8", Family::kSigned, 8, 1},
    {"i16", Family::kSigned, 16, 2},    {"i32", Family::kSigned, 32, 4},
    {"i64", Family::kSigned, 64, 8},    {"u2", Family::kUnsigned, 2, 1},
    {"u4", Family::kUnsigned, 4, 1},    {"u8", Family::kUnsigned, 8, 1},
    {"u16", Family::kUnsigned, 16, 2},  {"u32", Family::kUnsigned, 32, 4},
    {"u64", Family::kUnsigned, 64, 8},  {"f4e2m1", Family::kFloat, 4, 1},
    {"f8e4m3fn", Family::kFloat, 8, 1}, {"f8e4m3fnuz", Family::kFloat, 8, 1},
    {"f8e5m2", Family::kFloat, 8, 1},   {"f8e5m2fnuz", Family::kFloat, 8, 1},
    {"f8e8m0", Family::kFloat, 8, 1},   {"f16", Family::kFloat, 16, 2},
    {"bf16", Family::kFloat, 16, 2},    {"f32", Family::kFloat, 32, 4},
    {"f64", Family::kFloat, 64, 8},     {"string", Family::kString, 0, 0},
}};

const TypeInfo& Info(ElementType type) {
    return kTypes[static_cast<size_t>(type)];
}

// What a float format does with its last codes.
enum class Specials : uint8_t {
    kIeee,     // the greatest exponent holds infinities and NaNs
    kNan,      // all ones is NaN, there is no infinity
    kNanZero,  // the code of -0 is NaN, there is no infinity
    kNone,     // every code is a number
};

// A float with a sign and at most 16 bits.
struct FloatFormat {
    int exponent_bits;
    int mantissa_bits;
    int bias;
    Specials specials;

    int least_exponent() const { return 1 - bias; }
    uint32_t sign_bit() const { return 1U << (exponent_bits + mantissa_bits); }
    double greatest() const;
};

constexpr FloatFormat kF4E2M1Format = {2, 1, 1, Specials::kNone};
constexpr FloatFormat kF8E4M3FNFormat = {4, 3, 7, Specials::kNan};
constexpr FloatFormat kF8E4M3FNUZFormat = {4, 3, 8, Specials::kNanZero};
constexpr FloatFormat kF8E5M2Format = {5, 2, 15, Specials::kIeee};
constexpr FloatFormat kF8E5M2FNUZFormat = {5, 2, 16, Specials::kNanZero};
constexpr FloatFormat kF16Format = {5, 10, 15, Specials::kIeee};
constexpr FloatFormat kBF16Format = {8, 7, 127, Specials::kIeee};
constexpr int kE8M0Bias = 127;

// Null for f32, f64, f8e8m0 and what is no float.
const FloatFormat* FormatOf(ElementType type) {
    switch (type) {
        case ElementType::kF4E2M1:
            return &kF4E2M1Format;
        case ElementType::kF8E4M3FN:
            return &kF8E4M3FNFormat;
        case ElementType::kF8E4M3FNUZ:
            return &kF8E4M3FNUZFormat;
        case ElementType::kF8E5M2:
            return &kF8E5M2Format;
        case ElementType::kF8E5M2FNUZ:
            return &kF8E5M2FNUZFormat;
        case ElementType::kF16:
            return &kF16Format;
        case ElementType::kBF16:
            return &kBF16Format;
        default:
            return nullptr;
    }
}

// 2^exponent, for exponents of normal doubles.
double PowerOfTwo(int exponent) {
    return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// The exponent of the greatest power of two that is at most |value|; less than every format's least
// exponent for subnormal doubles and 0.
int ExponentOf(double value) {
    return static_cast<int>((std::bit_cast<uint64_t>(value) >> 52) & 0x7FF) - 1023;
}

double FloatFormat::greatest() const {
    const int exponents = 1 << exponent_bits;
    const int exponent = exponents - 1 - bias - (specials == Specials::kIeee ? 1 : 0);
    const int last_mantissa =
        (1 << mantissa_bits) - 1 - (specials == Specials::kNan ? 1 : 0);  // all ones is NaN
    return ((1 << mantissa_bits) + last_mantissa) * PowerOfTwo(exponent - mantissa_bits);
}

double RoundInteger(double value, Rounding rounding) {
    switch (rounding) {
        case Rounding::kUp:
            return std::ceil(value);
        case Rounding::kDown:
            return std::floor(value);
        case Rounding::kNearestEven:
            break;
    }
    return std::nearbyint(value);
}

// What becomes of a number beyond the greatest one.
double Overflowed(double value, const FloatFormat& format, Overflow overflow) {
    if (overflow == Overflow::kSaturate || format.specials == Specials::kNone) {
        return std::copysign(format.greatest(), value);
    }
    return std::copysign(format.specials == Specials::kIeee
                             ? std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::quiet_NaN(),
                         value);
}

double RoundToFormat(double value,
                     const FloatFormat& format,
                     Overflow overflow,
                     Rounding rounding) {
    const double greatest = format.greatest();
    if (std::isnan(value)) {
        return format.specials == Specials::kNone ? -0.0 : value;  // as ONNX's tests expect
    }
    if (std::isinf(value)) {
        return Overflowed(value, format, overflow);
    }
    const int exponent = std::max(ExponentOf(value), format.least_exponent());
    const int scale = exponent - format.mantissa_bits;
    const double rounded = RoundInteger(value * PowerOfTwo(-scale), rounding) * PowerOfTwo(scale);
    if (std::abs(rounded) > greatest) {
        const bool towards_zero = rounding == (value > 0 ? Rounding::kDown : Rounding::kUp);
        return Overflowed(value, format, towards_zero ? Overflow::kSaturate : overflow);
    }
    return rounded == 0 && format.specials == Specials::kNanZero ? 0.0 : rounded;
}

// Powers of two from 2^-127 to 2^127 and NaN; no zero and no sign.
double RoundToE8M0(double value, Overflow overflow, Rounding rounding) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    const double least = PowerOfTwo(-kE8M0Bias), greatest = PowerOfTwo(kE8M0Bias);
    if (std::isnan(value) || value < 0) {
        return kNan;
    }
    if (value < PowerOfTwo(-kE8M0Bias - 1)) {  // the next power below may still round up
        return overflow == Overflow::kSaturate || (rounding == Rounding::kUp && value > 0) ? least
                                                                                           : kNan;
    }
    if (std::isinf(value)) {
        return overflow == Overflow::kSaturate ? greatest : kNan;
    }
    const int exponent = ExponentOf(value);
    const double significand = value * PowerOfTwo(-exponent);  // 1 to 2
    const bool odd = ((exponent + kE8M0Bias) & 1) != 0;
    bool up = significand > 1.5 || (significand == 1.5 && odd);
    if (rounding != Rounding::kNearestEven) {
        up = rounding == Rounding::kUp && significand > 1;
    }
    const int rounded = exponent + (up ? 1 : 0);
    if (rounded < -kE8M0Bias || rounded > kE8M0Bias) {
        const double bound = rounded < 0 ? least : greatest;
        const bool towards_bound = rounding == Rounding::kDown && rounded > 0;
        return overflow == Overflow::kSaturate || towards_bound ? bound : kNan;
    }
    return PowerOfTwo(rounded);
}

// The code of a number that the format has.
uint32_t Encode(double value, const FloatFormat& format) {
    const uint32_t sign = std::signbit(value) ? format.sign_bit() : 0;
    const uint32_t top = ((1U << format.exponent_bits) - 1) << format.mantissa_bits;
    if (std::isnan(value)) {
        switch (format.specials) {
            case Specials::kIeee:
                return sign | top | (1U << (format.mantissa_bits - 1));
            case Specials::kNan:
                return sign | (format.sign_bit() - 1);
            default:
                return format.sign_bit();
        }
    }
    if (std::isinf(value)) {
        return sign | top;
    }
    const double magnitude = std::abs(value);
    const int exponent = std::max(ExponentOf(value), format.least_exponent());
    const auto significand =
        static_cast<uint32_t>(magnitude * PowerOfTwo(format.mantissa_bits - exponent));
    const uint32_t hidden = 1U << format.mantissa_bits;
    if (significand < hidden) {
        return sign | significand;
    }
    const auto exponent_code = static_cast<uint32_t>(exponent + format.bias);
    return sign | (exponent_code << format.mantissa_bits) | (significand - hidden);
}

double Decode(uint32_t code, const FloatFormat& format) {
    const bool negative = (code & format.sign_bit()) != 0;
    const uint32_t magnitude = code & (format.sign_bit() - 1);
    const auto exponent = static_cast<int>(magnitude >> format.mantissa_bits);
    const uint32_t mantissa = magnitude & ((1U << format.mantissa_bits) - 1);
    const bool top = exponent == (1 << format.exponent_bits) - 1;
    double value = 0;
    if ((format.specials == Specials::kNan && magnitude == format.sign_bit() - 1) ||
        (format.specials == Specials::kNanZero && negative && magnitude == 0) ||
        (format.specials == Specials::kIeee && top && mantissa != 0)) {
        value = std::numeric_limits<double>::quiet_NaN();
    } else if (format.specials == Specials::kIeee && top) {
        value = std::numeric_limits<double>::infinity();
    } else if (exponent == 0) {
        value = mantissa * PowerOfTwo(format.least_exponent() - format.mantissa_bits);
    } else {
        value = (mantissa + (1U << format.mantissa_bits)) *
                PowerOfTwo(exponent - format.bias - format.mantissa_bits);
    }
    return negative ? -value : value;
}

double DecodeE8M0(uint8_t code) {
    return code == 0xFF ? std::numeric_limits<double>::quiet_NaN() : PowerOfTwo(code - kE8M0Bias);
}

uint8_t EncodeE8M0(double value) {
    return std::isnan(value) ? 0xFF : static_cast<uint8_t>(ExponentOf(value) + kE8M0Bias);
}

// f32, with the overflow and rounding asked for.
double RoundToF32(double value, Overflow overflow, Rounding rounding) {
    constexpr double kGreatest = std::numeric_limits<float>::max();
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    float rounded = static_cast<float>(value);  // infinity from halfway to the next power of two on
    if (rounding == Rounding::kUp && rounded < value) {
        rounded = std::nextafter(rounded, kInfinity);
    } else if (rounding == Rounding::kDown && rounded > value) {
        rounded = std::nextafter(rounded, -kInfinity);
    }
    if (std::isinf(rounded) && overflow == Overflow::kSaturate) {
        return std::copysign(kGreatest, value);
    }
    return rounded;
}

template <typename T>
T Load(const uint8_t* data) {
    T value;
    std::memcpy(&value, data, sizeof(T));
    return value;
}

template <typename T>
void Store(T value, uint8_t* data) {
    std::memcpy(data, &value, sizeof(T));
}

// The integer with the low bits of `value` that the type has.
int64_t WrapInteger(int64_t value, ElementType type) {
    const uint32_t bits = BitsOf(type);
    if (bits == 64) {
        return value;
    }
    const auto shifted = static_cast<uint64_t>(value) << (64 - bits);
    return IsSigned(type) ? static_cast<int64_t>(shifted) >> (64 - bits)
                          : static_cast<int64_t>(shifted >> (64 - bits));
}

int64_t FloatToInteger(double value, ElementType type) {
    if (std::isnan(value)) {
        return 0;
    }
    const double truncated = std::trunc(value);
    const uint32_t bits = BitsOf(type);
    if (!IsSigned(type)) {
        if (truncated <= 0) {
            return 0;
        }
        if (truncated >= PowerOfTwo(static_cast<int>(bits))) {
            return WrapInteger(-1, type);
        }
        return static_cast<int64_t>(static_cast<uint64_t>(truncated));
    }
    const double bound = PowerOfTwo(static_cast<int>(bits) - 1);
    const auto least = static_cast<int64_t>(-bound);
    if (truncated >= bound) {
        return ~least;
    }
    return truncated <= -bound ? least : static_cast<int64_t>(truncated);
}

// The integer as a double; what is lost sets the last bit, so that rounding the result again to
// a narrower type gives what rounding the integer gives.
double IntegerRoundedToOdd(int64_t value, ElementType type) {
    const bool negative = type != ElementType::kU64 && value < 0;
    const uint64_t magnitude =
        negative ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    const int lost_bits = std::max(0, 64 - std::countl_zero(magnitude) - 53);
    uint64_t kept = magnitude >> lost_bits;
    if ((kept << lost_bits) != magnitude) {
        kept |= 1;
    }
    const double result = static_cast<double>(kept) * PowerOfTwo(lost_bits);
    return negative ? -result : result;
}

}  // namespace

std::string_view Name(ElementType type) {
    return Info(type).name;
}

std::optional<ElementType> ElementTypeByName(std::string_view name) {
    for (size_t i = 0; i < kTypes.size(); ++i) {
        if (kTypes[i].name == name) {
            return static_cast<ElementType>(i);
        }
    }
    return std::nullopt;
}

uint32_t BitsOf(ElementType type) {
    return Info(type).bits;
}

uint32_t BytesOf(ElementType type) {
    return Info(type).bytes;
}

bool IsFloat(ElementType type) {
    return Info(type).family == Family::kFloat;
}

bool IsInteger(ElementType type) {
    return Info(type).family == Family::kSigned || Info(type).family == Family::kUnsigned;
}

bool IsSigned(ElementType type) {
    return Info(type).family == Family::kSigned || IsFloat(type);
}

double Scalar::ToDouble(ElementType type) const {
    if (is_float) {
        return number;
    }
    return type == ElementType::kU64 ? static_cast<double>(static_cast<uint64_t>(integer))
                                     : static_cast<double>(integer);
}

Scalar ReadElement(ElementType type, const uint8_t* data) {
    switch (type) {
        case ElementType::kBool:
            return Scalar::Integer(*data != 0 ? 1 : 0);
        case ElementType::kI2:
        case ElementType::kI4:
        case ElementType::kU2:
        case ElementType::kU4:
            return Scalar::Integer(WrapInteger(*data, type));
        case ElementType::kI8:
            return Scalar::Integer(Load<int8_t>(data));
        case ElementType::kI16:
            return Scalar::Integer(Load<int16_t>(data));
        case ElementType::kI32:
            return Scalar::Integer(Load<int32_t>(data));
        case ElementType::kI64:
        case ElementType::kU64:
            return Scalar::Integer(Load<int64_t>(data));
        case ElementType::kU8:
            return Scalar::Integer(*data);
        case ElementType::kU16:
            return Scalar::Integer(Load<uint16_t>(data));
        case ElementType::kU32:
            return Scalar::Integer(Load<uint32_t>(data));
        case ElementType::kF8E8M0:
            return Scalar::Float(DecodeE8M0(*data));
        case ElementType::kF32:
            return Scalar::Float(Load<float>(data));
        case ElementType::kF64:
            return Scalar::Float(Load<double>(data));
        case ElementType::kString:
            return {};
        default:
            break;
    }
    const uint32_t code = BytesOf(type) == 1 ? *data : Load<uint16_t>(data);
    return Scalar::Float(Decode(code, *FormatOf(type)));
}

void WriteElement(ElementType type, const Scalar& value, uint8_t* data) {
    if (!IsFloat(type)) {
        if (type == ElementType::kBool) {
            const bool is_true = value.is_float ? value.number != 0 : value.integer != 0;
            *data = is_true ? 1 : 0;
        } else if (type != ElementType::kString) {
            const int64_t integer = value.is_float ? FloatToInteger(value.number, type)
                                                   : WrapInteger(value.integer, type);
            std::memcpy(data, &integer, BytesOf(type));  // little-endian: the low bytes
        }
        return;
    }
    const double number =
        value.is_float ? value.number : IntegerRoundedToOdd(value.integer, ElementType::kI64);
    if (type == ElementType::kF64) {
        Store(value.ToDouble(ElementType::kI64), data);
        return;
    }
    const double rounded = RoundToType(number, type);
    if (type == ElementType::kF32) {
        Store(static_cast<float>(rounded), data);
    } else if (type == ElementType::kF8E8M0) {
        *data = EncodeE8M0(rounded);
    } else {
        const uint32_t code = Encode(rounded, *FormatOf(type));
        std::memcpy(data, &code, BytesOf(type));
    }
}

double RoundToType(double value, ElementType type, Overflow overflow, Rounding rounding) {
    assert(IsFloat(type));
    switch (type) {
        case ElementType::kF64:
            return std::isinf(value) && overflow == Overflow::kSaturate
                       ? std::copysign(std::numeric_limits<double>::max(), value)
                       : value;
        case ElementType::kF32:
            return RoundToF32(value, overflow, rounding);
        case ElementType::kF8E8M0:
            return RoundToE8M0(value, overflow, rounding);
        default:
            return RoundToFormat(value, *FormatOf(type), overflow, rounding);
    }
}

Scalar ConvertScalar(const Scalar& value,
                     ElementType from,
                     ElementType to,
                     Overflow overflow,
                     Rounding rounding) {
    if (to == ElementType::kBool) {
        return Scalar::Integer((value.is_float ? value.number != 0 : value.integer != 0) ? 1 : 0);
    }
    if (IsInteger(to)) {
        return Scalar::Integer(value.is_float ? FloatToInteger(value.number, to)
                                              : WrapInteger(value.integer, to));
    }
    if (to == ElementType::kString) {
        return value;
    }
    if (value.is_float) {
        return Scalar::Float(RoundToType(value.number, to, overflow, rounding));
    }
    if (to == ElementType::kF64) {
        return Scalar::Float(value.ToDouble(from));
    }
    return Scalar::Float(
        RoundToType(IntegerRoundedToOdd(value.integer, from), to, overflow, rounding));
}

}  // namespace fornax::graph

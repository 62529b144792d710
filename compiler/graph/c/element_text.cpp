// Types and numbers; functions are in function_text.cpp.
#include <cmath>

#include <fmt/format.h>

#include "compiler/graph/c/element_text.h"

namespace fornax::graph::c {
namespace {

bool IsNarrowFloat(ElementType type) {
    return IsFloat(type) && type != ElementType::kF32 && type != ElementType::kF64;
}

// The integers that take a byte and have fewer bits.
bool IsPartOfByte(ElementType type) {
    return IsInteger(type) && BitsOf(type) < 8;
}

// The format of support.h.
std::string FormatName(ElementType type) {
    return fmt::format("fx_{}", Name(type));
}

std::string FloatText(double value, bool is_double) {
    if (std::isnan(value)) {
        return is_double ? "(double)NAN" : "NAN";
    }
    if (std::isinf(value)) {
        return fmt::format("({}{})", value < 0 ? "-" : "",
                           is_double ? "(double)INFINITY" : "INFINITY");
    }
    const std::string text = fmt::format("{}{:a}{}", std::signbit(value) ? "-" : "",
                                         std::abs(value), is_double ? "" : "f");
    return std::signbit(value) ? "(" + text + ")" : text;
}

}  // namespace

std::string_view CTypeOf(ElementType type) {
    switch (type) {
        case ElementType::kBool:
            return "bool";
        case ElementType::kI2:
        case ElementType::kI4:
        case ElementType::kI8:
            return "int8_t";
        case ElementType::kI16:
            return "int16_t";
        case ElementType::kI32:
            return "int32_t";
        case ElementType::kI64:
            return "int64_t";
        case ElementType::kU2:
        case ElementType::kU4:
        case ElementType::kU8:
            return "uint8_t";
        case ElementType::kU16:
            return "uint16_t";
        case ElementType::kU32:
            return "uint32_t";
        case ElementType::kU64:
            return "uint64_t";
        case ElementType::kF64:
            return "double";
        default:
            return "float";
    }
}

std::string_view StorageTypeOf(ElementType type) {
    if (type == ElementType::kBool || IsPartOfByte(type)) {
        return "uint8_t";
    }
    if (IsNarrowFloat(type)) {
        return BytesOf(type) == 2 ? "uint16_t" : "uint8_t";
    }
    return CTypeOf(type);
}

std::string IntegerText(int64_t value) {
    if (value == INT64_MIN) {
        return "INT64_MIN";
    }
    const bool is_small = value >= INT32_MIN + 1 && value <= INT32_MAX;
    const std::string text =
        is_small ? fmt::format("{}", value) : fmt::format("INT64_C({})", value);
    return value < 0 ? "(" + text + ")" : text;
}

std::string ConstantText(const Scalar& value, ElementType type) {
    if (IsFloat(type)) {
        return FloatText(value.number, type == ElementType::kF64);
    }
    if (type == ElementType::kU64 || type == ElementType::kU32) {
        return fmt::format("UINT64_C({})", static_cast<uint64_t>(value.integer));
    }
    return IntegerText(value.integer);
}

std::string DecodeText(ElementType type, const std::string& element) {
    if (type == ElementType::kBool) {
        return fmt::format("({} != 0)", element);
    }
    if (IsPartOfByte(type)) {
        return WrapText(type, element);
    }
    if (type == ElementType::kBF16) {
        return fmt::format("fx_from_bf16({})", element);
    }
    if (IsNarrowFloat(type)) {
        return fmt::format("(float)fx_decode({}, {})", element, FormatName(type));
    }
    return element;
}

std::string EncodeText(ElementType type, const std::string& value) {
    if (IsPartOfByte(type)) {
        return fmt::format("(uint8_t){}", value);
    }
    if (IsNarrowFloat(type)) {
        return fmt::format("({})fx_encode({}, {})", StorageTypeOf(type), value, FormatName(type));
    }
    return value;
}

std::string WrapText(ElementType type, const std::string& value) {
    if (!IsPartOfByte(type)) {
        return IsInteger(type) && BitsOf(type) < 32 ? fmt::format("({})({})", CTypeOf(type), value)
                                                    : value;
    }
    const uint32_t unused = 8 - BitsOf(type);
    return IsSigned(type)
               ? fmt::format("((int8_t)((uint8_t)({}) << {}) >> {})", value, unused, unused)
               : fmt::format("(({}) & {})", value, (1U << BitsOf(type)) - 1);
}

std::string CastText(const std::string& value,
                     ElementType from,
                     ElementType to,
                     Overflow overflow,
                     Rounding rounding) {
    if (to == ElementType::kBool) {
        return fmt::format("({} != 0)", value);
    }
    if (IsInteger(to)) {
        if (!IsFloat(from)) {
            return WrapText(to, fmt::format("({}){}", CTypeOf(to), value));
        }
        return fmt::format("fx_to_{}({}, {})", IsSigned(to) ? "signed" : "unsigned", value,
                           BitsOf(to));
    }
    const std::string how =
        fmt::format("{}, {}", overflow == Overflow::kSaturate ? 1 : 0, static_cast<int>(rounding));
    if (to == ElementType::kF64) {
        const bool saturates = IsFloat(from) && overflow == Overflow::kSaturate;
        return saturates ? fmt::format("fx_finite({})", value) : fmt::format("(double){}", value);
    }
    const bool nearest = overflow == Overflow::kSpecial && rounding == Rounding::kNearestEven;
    if (to == ElementType::kF32) {
        if (nearest) {
            return fmt::format("(float){}", value);
        }
        return IsFloat(from) ? fmt::format("fx_round_f32({}, {})", value, how)
                             : fmt::format("fx_round_f32({}, {})",
                                           fmt::format("fx_odd({}, {})", value,
                                                       from == ElementType::kU64 ? 1 : 0),
                                           how);
    }
    const std::string number =
        IsFloat(from) ? value
                      : fmt::format("fx_odd({}, {})", value, from == ElementType::kU64 ? 1 : 0);
    return fmt::format("(float)fx_round({}, {}, {})", number, FormatName(to), how);
}

std::string BitcastText(const std::string& value, ElementType from, ElementType to) {
    std::string bits = EncodeText(from, value);
    if (from == ElementType::kF32 || from == ElementType::kF64) {
        bits = fmt::format("fx_bits_of_{}({})", Name(from), value);
    }
    if (to == ElementType::kF32 || to == ElementType::kF64) {
        return fmt::format("fx_{}_of_bits({})", Name(to), bits);
    }
    return DecodeText(to, fmt::format("({})({})", StorageTypeOf(to), bits));
}

}  // namespace fornax::graph::c

// The types of tensors' elements, and how hosts read and write one element.
//
// In memory every element has whole bytes: the types of 2 and 4 bits take one byte each, bool is a
// byte that is 0 or 1. Frontends unpack what files store closer; quantised weights that are to stay
// packed are u8 tensors with the expressions that decode them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fornax::graph {

// The order is stored in plan files: add at the end.
enum class ElementType : uint8_t {
    kBool,
    kI2,
    kI4,
    kI8,
    kI16,
    kI32,
    kI64,
    kU2,
    kU4,
    kU8,
    kU16,
    kU32,
    kU64,
    kF4E2M1,
    kF8E4M3FN,
    kF8E4M3FNUZ,
    kF8E5M2,
    kF8E5M2FNUZ,
    kF8E8M0,
    kF16,
    kBF16,
    kF32,
    kF64,
    kString,  // only on the host
};
inline constexpr ElementType kLastElementType = ElementType::kString;

// "f32", "i64", "f8e4m3fn".
std::string_view Name(ElementType type);
std::optional<ElementType> ElementTypeByName(std::string_view name);

// The bits of information of an element, and the bytes that it takes in memory (0 for strings).
uint32_t BitsOf(ElementType type);
uint32_t BytesOf(ElementType type);
bool IsFloat(ElementType type);
// Signed or unsigned, without bool.
bool IsInteger(ElementType type);
bool IsSigned(ElementType type);  // signed integers and floats

// One element as a number. Floats are exact in a double; integers and bools are in `integer`, those
// of u64 as the same 64 bits.
struct Scalar {
    bool is_float = false;
    double number = 0;
    int64_t integer = 0;

    static Scalar Float(double value) { return {true, value, 0}; }
    static Scalar Integer(int64_t value) { return {false, 0, value}; }
    // As either kind; u64 above 2^63 is the caller's to handle (`ToDouble` takes the type).
    double ToDouble(ElementType type) const;
    bool operator==(const Scalar&) const = default;
};

// How a number becomes a float type that cannot hold it.
enum class Overflow : uint8_t {
    kSaturate,  // the greatest finite number
    kSpecial,   // infinity, or NaN where the type has no infinity
};

enum class Rounding : uint8_t { kNearestEven, kUp, kDown };

Scalar ReadElement(ElementType type, const uint8_t* data);
// Rounds floats to the nearest, ties to even; integers keep their low bits.
void WriteElement(ElementType type, const Scalar& value, uint8_t* data);

// The rounding of WriteElement by itself: the nearest number that the type has.
double RoundToType(double value,
                   ElementType type,
                   Overflow overflow = Overflow::kSpecial,
                   Rounding rounding = Rounding::kNearestEven);
// What a conversion gives: floats to integers truncate and saturate (NaN gives 0), integers to
// narrower ones keep their low bits, anything but 0 to bool is 1.
Scalar ConvertScalar(const Scalar& value,
                     ElementType from,
                     ElementType to,
                     Overflow overflow = Overflow::kSpecial,
                     Rounding rounding = Rounding::kNearestEven);

}  // namespace fornax::graph

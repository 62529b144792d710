// Codes of narrow floats against values from their specifications, and conversions.
#include "compiler/graph/ir/element_type.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>

namespace fornax::graph {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

uint32_t CodeOf(ElementType type, double value) {
    uint32_t code = 0;
    WriteElement(type, Scalar::Float(value), reinterpret_cast<uint8_t*>(&code));
    return code;
}

double ValueOf(ElementType type, uint32_t code) {
    return ReadElement(type, reinterpret_cast<const uint8_t*>(&code)).number;
}

bool Same(double a, double b) {
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

TEST(ElementType, HasANameThatFindsIt) {
    for (size_t i = 0; i <= static_cast<size_t>(kLastElementType); ++i) {
        const auto type = static_cast<ElementType>(i);
        EXPECT_EQ(ElementTypeByName(Name(type)), type);
    }
    EXPECT_EQ(Name(ElementType::kF8E4M3FNUZ), "f8e4m3fnuz");
    EXPECT_EQ(Name(ElementType::kString), "string");
    EXPECT_EQ(ElementTypeByName("f80"), std::nullopt);
}

TEST(ElementType, HasBitsAndBytes) {
    EXPECT_EQ(BitsOf(ElementType::kI2), 2U);
    EXPECT_EQ(BytesOf(ElementType::kI2), 1U);
    EXPECT_EQ(BitsOf(ElementType::kBool), 1U);
    EXPECT_EQ(BitsOf(ElementType::kBF16), 16U);
    EXPECT_EQ(BytesOf(ElementType::kF64), 8U);
    EXPECT_EQ(BytesOf(ElementType::kString), 0U);
    EXPECT_TRUE(IsFloat(ElementType::kF4E2M1) && IsSigned(ElementType::kF4E2M1));
    EXPECT_TRUE(IsInteger(ElementType::kU4) && !IsSigned(ElementType::kU4));
    EXPECT_FALSE(IsInteger(ElementType::kBool) || IsFloat(ElementType::kBool));
}

struct CodeCase {
    ElementType type;
    uint32_t code;
    double value;
};

std::ostream& operator<<(std::ostream& stream, const CodeCase& c) {
    return stream << Name(c.type) << " code " << c.code << " value " << c.value;
}

class Codes : public testing::TestWithParam<CodeCase> {};

TEST_P(Codes, ReadAndWrite) {
    const CodeCase& c = GetParam();
    EXPECT_TRUE(Same(ValueOf(c.type, c.code), c.value)) << ValueOf(c.type, c.code);
    if (!std::isnan(c.value)) {  // there are several
        EXPECT_EQ(CodeOf(c.type, c.value), c.code);
    }
    EXPECT_TRUE(Same(RoundToType(c.value, c.type), c.value));
}

constexpr auto kF4 = ElementType::kF4E2M1;
constexpr auto kE4M3 = ElementType::kF8E4M3FN;
constexpr auto kE4M3Z = ElementType::kF8E4M3FNUZ;
constexpr auto kE5M2 = ElementType::kF8E5M2;
constexpr auto kE5M2Z = ElementType::kF8E5M2FNUZ;
constexpr auto kE8M0 = ElementType::kF8E8M0;
constexpr auto kF16 = ElementType::kF16;
constexpr auto kBF16 = ElementType::kBF16;

INSTANTIATE_TEST_SUITE_P(ElementType,
                         Codes,
                         testing::Values(CodeCase{kF4, 0x0, 0.0},
                                         CodeCase{kF4, 0x1, 0.5},
                                         CodeCase{kF4, 0x2, 1.0},
                                         CodeCase{kF4, 0x3, 1.5},
                                         CodeCase{kF4, 0x4, 2.0},
                                         CodeCase{kF4, 0x5, 3.0},
                                         CodeCase{kF4, 0x6, 4.0},
                                         CodeCase{kF4, 0x7, 6.0},
                                         CodeCase{kF4, 0x8, -0.0},
                                         CodeCase{kF4, 0xF, -6.0},
                                         // OCP 8-bit floating point, table 2.
                                         CodeCase{kE4M3, 0x7E, 448.0},
                                         CodeCase{kE4M3, 0x08, 0x1p-6},
                                         CodeCase{kE4M3, 0x07, 0.875 * 0x1p-6},
                                         CodeCase{kE4M3, 0x01, 0x1p-9},
                                         CodeCase{kE4M3, 0x7F, kNan},
                                         CodeCase{kE4M3, 0xFF, kNan},
                                         CodeCase{kE4M3, 0x80, -0.0},
                                         CodeCase{kE4M3, 0x38, 1.0},
                                         CodeCase{kE4M3, 0xB9, -1.125},
                                         CodeCase{kE5M2, 0x7B, 57344.0},
                                         CodeCase{kE5M2, 0x7C, kInf},
                                         CodeCase{kE5M2, 0xFC, -kInf},
                                         CodeCase{kE5M2, 0x7D, kNan},
                                         CodeCase{kE5M2, 0x04, 0x1p-14},
                                         CodeCase{kE5M2, 0x03, 0.75 * 0x1p-14},
                                         CodeCase{kE5M2, 0x01, 0x1p-16},
                                         CodeCase{kE5M2, 0x3C, 1.0},
                                         CodeCase{kE4M3Z, 0x80, kNan},
                                         CodeCase{kE4M3Z, 0x7F, 240.0},
                                         CodeCase{kE4M3Z, 0x01, 0x1p-10},
                                         CodeCase{kE4M3Z, 0x40, 1.0},
                                         CodeCase{kE4M3Z, 0xC0, -1.0},
                                         CodeCase{kE5M2Z, 0x80, kNan},
                                         CodeCase{kE5M2Z, 0x7F, 57344.0},
                                         CodeCase{kE5M2Z, 0x01, 0x1p-17},
                                         CodeCase{kE5M2Z, 0x40, 1.0},
                                         CodeCase{kE8M0, 0x00, 0x1p-127},
                                         CodeCase{kE8M0, 0x7F, 1.0},
                                         CodeCase{kE8M0, 0xFE, 0x1p127},
                                         CodeCase{kE8M0, 0xFF, kNan},
                                         CodeCase{kF16, 0x3C00, 1.0},
                                         CodeCase{kF16, 0x7BFF, 65504.0},
                                         CodeCase{kF16, 0x0400, 0x1p-14},
                                         CodeCase{kF16, 0x0001, 0x1p-24},
                                         CodeCase{kF16, 0x03FF, 1023 * 0x1p-24},
                                         CodeCase{kF16, 0x7C00, kInf},
                                         CodeCase{kF16, 0x7E00, kNan},
                                         CodeCase{kF16, 0x8000, -0.0},
                                         CodeCase{kF16, 0xC000, -2.0},
                                         CodeCase{kBF16, 0x3F80, 1.0},
                                         CodeCase{kBF16, 0x7F7F, 0x1.FEp127},
                                         CodeCase{kBF16, 0x0080, 0x1p-126},
                                         CodeCase{kBF16, 0x0001, 0x1p-133},
                                         CodeCase{kBF16, 0xFF80, -kInf},
                                         CodeCase{kBF16, 0x7FC0, kNan}));

TEST(ElementType, EveryCodeOfANarrowFloatSurvivesReadingAndWriting) {
    for (const ElementType type : {kF4, kE4M3, kE4M3Z, kE5M2, kE5M2Z, kE8M0, kF16, kBF16}) {
        for (uint32_t code = 0; code < (1U << BitsOf(type)); ++code) {
            const double value = ValueOf(type, code);
            if (std::isnan(value)) {
                EXPECT_TRUE(std::isnan(ValueOf(type, CodeOf(type, value))));
            } else {
                ASSERT_EQ(CodeOf(type, value), code) << Name(type) << " " << value;
            }
        }
    }
}

struct RoundCase {
    ElementType type;
    double value;
    double saturated;
    double special;
};

std::ostream& operator<<(std::ostream& stream, const RoundCase& c) {
    return stream << Name(c.type) << " of " << c.value;
}

class Rounded : public testing::TestWithParam<RoundCase> {};

TEST_P(Rounded, ToTheNearest) {
    const RoundCase& c = GetParam();
    const double saturated = RoundToType(c.value, c.type, Overflow::kSaturate);
    const double special = RoundToType(c.value, c.type, Overflow::kSpecial);
    EXPECT_TRUE(Same(saturated, c.saturated)) << saturated;
    EXPECT_TRUE(Same(special, c.special)) << special;
}

INSTANTIATE_TEST_SUITE_P(
    ElementType,
    Rounded,
    testing::Values(
        // Ties go to the even mantissa.
        RoundCase{kF4, 0.25, 0, 0},
        RoundCase{kF4, 0.75, 1, 1},
        RoundCase{kF4, 2.5, 2, 2},
        RoundCase{kF4, 5, 4, 4},
        RoundCase{kF4, 5.01, 6, 6},
        RoundCase{kF4, 1e6, 6, 6},
        RoundCase{kF4, -kInf, -6, -6},
        RoundCase{kF4, kNan, -0.0, -0.0},
        // 464 lies between 448 and the code of NaN.
        RoundCase{kE4M3, 464, 448, 448},
        RoundCase{kE4M3, 464.01, 448, kNan},
        RoundCase{kE4M3, -1e9, -448, kNan},
        RoundCase{kE4M3, kInf, 448, kNan},
        RoundCase{kE4M3, kNan, kNan, kNan},
        RoundCase{kE4M3, 0x1p-10, 0, 0},
        RoundCase{kE4M3, 0x1.8p-10, 0x1p-9, 0x1p-9},
        RoundCase{kE4M3, -0x1p-30, -0.0, -0.0},
        RoundCase{kE4M3Z, 247.9, 240, 240},
        RoundCase{kE4M3Z, 248, 240, kNan},
        RoundCase{kE4M3Z, kInf, 240, kNan},
        RoundCase{kE4M3Z, -0.0, 0.0, 0.0},
        RoundCase{kE4M3Z, -0x1p-30, 0.0, 0.0},
        RoundCase{kE5M2, 61439, 57344, 57344},
        RoundCase{kE5M2, 61440, 57344, kInf},
        RoundCase{kE5M2, -kInf, -57344, -kInf},
        RoundCase{kE5M2, 1.125, 1, 1},
        RoundCase{kE5M2, 1.375, 1.5, 1.5},
        RoundCase{kE5M2Z, -61440, -57344, kNan},
        RoundCase{kE5M2Z, kInf, 57344, kNan},
        RoundCase{kE8M0, 0, 0x1p-127, kNan},
        RoundCase{kE8M0, 1e-60, 0x1p-127, kNan},
        RoundCase{kE8M0, 3, 2, 2},
        RoundCase{kE8M0, 1.5, 2, 2},
        RoundCase{kE8M0, 3.1, 4, 4},
        RoundCase{kE8M0, kInf, 0x1p127, kNan},
        RoundCase{kE8M0, 0x1.Cp127, 0x1p127, kNan},
        RoundCase{kE8M0, -1, kNan, kNan},
        RoundCase{kF16, 65519.99, 65504, 65504},
        RoundCase{kF16, 65520, 65504, kInf},
        RoundCase{kF16, 0x1p-25, 0, 0},
        RoundCase{kF16, 0x1.0000001p-25, 0x1p-24, 0x1p-24},
        RoundCase{kF16, 1e-320, 0, 0},
        // Through f32, these would be ties that go the other way.
        RoundCase{kF16, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10, 1 + 0x1p-10},
        RoundCase{kBF16, 1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-7, 1 + 0x1p-7},
        RoundCase{kBF16, 1 + 0x1p-8, 1, 1},
        RoundCase{kBF16, 3.4e38, 0x1.FEp127, kInf},
        RoundCase{ElementType::kF32, 1e300, 0x1.FFFFFEp127, kInf},
        RoundCase{ElementType::kF32, 0x1.FFFFFEFp127, 0x1.FFFFFEp127, 0x1.FFFFFEp127},
        RoundCase{ElementType::kF32, 0.1, 0.1F, 0.1F},
        RoundCase{ElementType::kF64, -kInf, -std::numeric_limits<double>::max(), -kInf}));

TEST(ElementType, RoundsUpAndDown) {
    const auto up = [](double value, ElementType type) {
        return RoundToType(value, type, Overflow::kSpecial, Rounding::kUp);
    };
    const auto down = [](double value, ElementType type) {
        return RoundToType(value, type, Overflow::kSpecial, Rounding::kDown);
    };
    EXPECT_EQ(up(1.1, kE8M0), 2);
    EXPECT_EQ(down(1.9, kE8M0), 1);
    EXPECT_EQ(up(1.0, kE8M0), 1);
    EXPECT_EQ(RoundToType(0.0, kE8M0, Overflow::kSaturate, Rounding::kUp), 0x1p-127);
    EXPECT_EQ(RoundToType(1e39, kE8M0, Overflow::kSaturate, Rounding::kUp), 0x1p127);
    EXPECT_EQ(up(1.01, kE5M2), 1.25);
    EXPECT_EQ(down(1.24, kE5M2), 1);
    EXPECT_EQ(up(-1.24, kE5M2), -1);
    EXPECT_EQ(down(1e9, kF16), 65504);
    EXPECT_EQ(up(1e9, kF16), kInf);
    EXPECT_EQ(up(0.1, ElementType::kF32), 0.1F);  // 0.1F is above 0.1
    EXPECT_EQ(down(0.1, ElementType::kF32), std::nextafter(0.1F, 0.0F));
}

TEST(ElementType, NarrowIntegersAreSignExtendedBytes) {
    uint8_t byte = 0;
    WriteElement(ElementType::kI4, Scalar::Integer(-3), &byte);
    EXPECT_EQ(byte, 0xFD);
    EXPECT_EQ(ReadElement(ElementType::kI4, &byte).integer, -3);
    WriteElement(ElementType::kI4, Scalar::Integer(8), &byte);  // wraps
    EXPECT_EQ(ReadElement(ElementType::kI4, &byte).integer, -8);
    WriteElement(ElementType::kU4, Scalar::Integer(-1), &byte);
    EXPECT_EQ(byte, 0x0F);
    WriteElement(ElementType::kU2, Scalar::Integer(6), &byte);
    EXPECT_EQ(byte, 2);
    WriteElement(ElementType::kI2, Scalar::Integer(2), &byte);
    EXPECT_EQ(ReadElement(ElementType::kI2, &byte).integer, -2);
    byte = 0xF7;  // what is above the low bits does not count
    EXPECT_EQ(ReadElement(ElementType::kI4, &byte).integer, 7);
}

TEST(ElementType, IntegersOfAllWidthsAreReadAndWritten) {
    for (const ElementType type :
         {ElementType::kI8, ElementType::kI16, ElementType::kI32, ElementType::kI64}) {
        uint64_t data = 0;
        WriteElement(type, Scalar::Integer(-5), reinterpret_cast<uint8_t*>(&data));
        EXPECT_EQ(ReadElement(type, reinterpret_cast<uint8_t*>(&data)).integer, -5);
    }
    const std::array<uint8_t, 8> ones = {255, 255, 255, 255, 255, 255, 255, 255};
    EXPECT_EQ(ReadElement(ElementType::kU8, ones.data()).integer, 255);
    EXPECT_EQ(ReadElement(ElementType::kU16, ones.data()).integer, 65535);
    EXPECT_EQ(ReadElement(ElementType::kU32, ones.data()).integer, 0xFFFFFFFF);
    EXPECT_EQ(ReadElement(ElementType::kBool, ones.data()).integer, 1);
    EXPECT_EQ(Scalar::Integer(-1).ToDouble(ElementType::kU64), 0x1p64);
}

int64_t ToInteger(double value, ElementType type) {
    return ConvertScalar(Scalar::Float(value), ElementType::kF64, type).integer;
}

TEST(ElementType, FloatsToIntegersTruncateAndSaturate) {
    EXPECT_EQ(ToInteger(-2.9, ElementType::kI32), -2);
    EXPECT_EQ(ToInteger(1e10, ElementType::kI32), INT32_MAX);
    EXPECT_EQ(ToInteger(-1e10, ElementType::kI32), INT32_MIN);
    EXPECT_EQ(ToInteger(kNan, ElementType::kI8), 0);
    EXPECT_EQ(ToInteger(7.9, ElementType::kI4), 7);
    EXPECT_EQ(ToInteger(9, ElementType::kI4), 7);
    EXPECT_EQ(ToInteger(-9, ElementType::kI4), -8);
    EXPECT_EQ(ToInteger(-0.9, ElementType::kU8), 0);
    EXPECT_EQ(ToInteger(-1, ElementType::kU8), 0);
    EXPECT_EQ(ToInteger(300, ElementType::kU8), 255);
    EXPECT_EQ(ToInteger(0x1p63, ElementType::kI64), INT64_MAX);
    EXPECT_EQ(ToInteger(-kInf, ElementType::kI64), INT64_MIN);
    EXPECT_EQ(ToInteger(0x1p63, ElementType::kU64), INT64_MIN);  // the bits of 2^63
    EXPECT_EQ(ToInteger(kInf, ElementType::kU64), -1);
}

TEST(ElementType, IntegersToNarrowerOnesKeepLowBits) {
    const auto convert = [](int64_t value, ElementType type) {
        return ConvertScalar(Scalar::Integer(value), ElementType::kI64, type).integer;
    };
    EXPECT_EQ(convert(200, ElementType::kI8), -56);
    EXPECT_EQ(convert(-1, ElementType::kU16), 65535);
    EXPECT_EQ(convert(256, ElementType::kU8), 0);
    EXPECT_EQ(convert(256, ElementType::kBool), 1);
    EXPECT_EQ(convert(-1, ElementType::kU64), -1);
}

TEST(ElementType, IntegersToFloatsRoundOnce) {
    const auto convert = [](int64_t value, ElementType from, ElementType to) {
        return ConvertScalar(Scalar::Integer(value), from, to).number;
    };
    // Rounded to a double first, this would be a tie and go down.
    const int64_t above_tie = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
    EXPECT_EQ(convert(above_tie, ElementType::kI64, ElementType::kF32),
              static_cast<double>(static_cast<float>(above_tie)));
    EXPECT_EQ(convert(above_tie, ElementType::kI64, ElementType::kF32), 0x1p60 + 0x1p37);
    EXPECT_EQ(convert(-1, ElementType::kU64, ElementType::kF32), 0x1p64);
    EXPECT_EQ(convert(INT64_MIN, ElementType::kI64, ElementType::kF32), -0x1p63);
    EXPECT_EQ(convert(INT64_MAX, ElementType::kI64, ElementType::kF64), 0x1p63);
    EXPECT_EQ(convert(70000, ElementType::kI32, kF16), kInf);
    EXPECT_EQ(convert(17, ElementType::kI32, kE4M3), 16);
    EXPECT_EQ(convert(1, ElementType::kBool, ElementType::kF32), 1);
}

TEST(ElementType, AnythingButZeroIsTrue) {
    const auto convert = [](double value) {
        return ConvertScalar(Scalar::Float(value), ElementType::kF32, ElementType::kBool).integer;
    };
    EXPECT_EQ(convert(0.25), 1);
    EXPECT_EQ(convert(-0.0), 0);
    EXPECT_EQ(convert(kNan), 1);
}

}  // namespace
}  // namespace fornax::graph

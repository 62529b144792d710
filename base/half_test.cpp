// Conversions to and from half precision against exact values, ties and specials.
#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fornax {
namespace {

TEST(Half, EveryValueSurvivesTheRoundTrip) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        auto half = static_cast<uint16_t>(bits);
        if (std::isnan(HalfToDouble(half))) {
            EXPECT_TRUE(std::isnan(HalfToDouble(DoubleToHalf(HalfToDouble(half)))));
            continue;
        }
        ASSERT_EQ(DoubleToHalf(HalfToDouble(half)), half) << bits;
    }
}

TEST(Half, KnownValues) {
    EXPECT_EQ(HalfToDouble(0x3c00), 1.0);
    EXPECT_EQ(HalfToDouble(0xc000), -2.0);
    EXPECT_EQ(HalfToDouble(0x0001), 0x1p-24);
    EXPECT_EQ(HalfToDouble(0x7bff), 65504.0);
    EXPECT_TRUE(std::isinf(HalfToDouble(0x7c00)));
}

// Between each pair of neighbours: the midpoint goes to the even one, its neighbours to the
// nearest.
TEST(Half, RoundsToNearestEven) {
    for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
        double low = HalfToDouble(static_cast<uint16_t>(bits));
        double high = HalfToDouble(static_cast<uint16_t>(bits + 1));
        double middle = (low + high) / 2;
        ASSERT_EQ(DoubleToHalf(middle), bits & 1 ? bits + 1 : bits) << bits;
        ASSERT_EQ(DoubleToHalf(std::nextafter(middle, 0.0)), bits);
        ASSERT_EQ(DoubleToHalf(std::nextafter(middle, 1e9)), bits + 1);
        ASSERT_EQ(DoubleToHalf(-std::nextafter(middle, 1e9)), (bits + 1) | 0x8000);
    }
    EXPECT_EQ(DoubleToHalf(65519.99), 0x7bff);
    EXPECT_EQ(DoubleToHalf(65520), 0x7c00);
    EXPECT_EQ(DoubleToHalf(1e300), 0x7c00);
    EXPECT_EQ(DoubleToHalf(0x1p-25), 0);
    EXPECT_EQ(DoubleToHalf(-1e-300), 0x8000);
}

}  // namespace
}  // namespace fornax

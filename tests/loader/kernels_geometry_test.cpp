// Vector, matrix and packing functions of GLSL through the loader against the host's double, with
// the errors that Vulkan's precision appendix lets their products and sums have.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "tests/loader/shaders/geometry.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

using KernelsGeometryTest = VulkanTest;
using Vec3 = std::array<double, 3>;
using Numbers = std::array<float, 16>;

double Dot(const Vec3& a, const Vec3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
Vec3 Sum(const Vec3& a, const Vec3& b, double scale) {
    return {a[0] + scale * b[0], a[1] + scale * b[1], a[2] + scale * b[2]};
}
Vec3 Normalize(const Vec3& a) {
    return Sum({}, a, 1 / std::sqrt(Dot(a, a)));
}

// The determinant of the upper left `size` columns and rows of a matrix whose columns are four
// numbers long.
double Determinant(const Numbers& m, int size, unsigned used_rows = 0) {
    double sum = 0;
    double sign = 1;
    const int column = std::popcount(used_rows);
    if (column == size) {
        return 1;
    }
    for (int row = 0; row < size; ++row) {
        if (used_rows >> row & 1) {
            continue;
        }
        sum += sign * m[column * 4 + row] * Determinant(m, size, used_rows | 1u << row);
        sign = -sign;
    }
    return sum;
}

// The results of geometry.comp in its order.
std::vector<double> Geometry(const Numbers& n) {
    std::vector<double> out;
    const auto put = [&](const Vec3& v) { out.insert(out.end(), v.begin(), v.end()); };
    const auto put_identity = [&](int size) {
        for (int i = 0; i < size * size; ++i) {
            out.push_back(i / size == i % size ? 1 : 0);
        }
    };
    const Vec3 a = {n[0], n[1], n[2]};
    const Vec3 b = {n[3], n[4], n[5]};
    const Vec3 c = Normalize({n[6], n[7], n[8]});
    const Vec3 difference = Sum(a, b, -1);
    out = {std::sqrt(Dot(a, a)), std::sqrt(Dot(difference, difference)), Dot(a, b)};
    put(c);
    put({a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]});
    put(Sum({}, a, Dot(c, b) < 0 ? 1 : -1));
    put(Sum(a, c, -2 * Dot(c, a)));
    const Vec3 incident = Normalize(a);
    const double cosine = Dot(c, incident);
    const double k = 1 - 0.75 * 0.75 * (1 - cosine * cosine);
    put(Sum(Sum({}, incident, 0.75), c, -(0.75 * cosine + std::sqrt(k))));
    for (int size = 2; size <= 4; ++size) {
        out.push_back(Determinant(n, size));
    }
    for (int i = 0; i < 9; ++i) {
        out.push_back(n[i % 3 * 4 + i / 3]);
    }
    for (int i = 0; i < 9; ++i) {
        out.push_back(a[i % 3] * b[i / 3]);
    }
    for (int size = 2; size <= 4; ++size) {
        put_identity(size);
    }
    for (int i = 0; i < 9; ++i) {
        out.push_back(std::pow(n[i / 3 * 4 + i % 3], 2.0));
    }
    for (int r = 0; r < 3; ++r) {
        out.push_back(n[r] * a[0] + n[4 + r] * a[1] + n[8 + r] * a[2]);
    }
    for (int i = 0; i < 3; ++i) {
        out.push_back(a[0] * n[i * 4] + a[1] * n[i * 4 + 1] + a[2] * n[i * 4 + 2]);
    }
    return out;
}

double HalfOf(uint32_t bits) {
    const uint32_t exponent = bits >> 10 & 31;
    const double fraction = bits & 1023;
    const double size = exponent ? std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25)
                                 : std::ldexp(fraction, -24);
    return bits & 0x8000 ? -size : size;
}

void ExpectPacked(const Numbers& n, const uint32_t* packed) {
    // Packing may round either way where the scaled number lies between two.
    const auto expect_field = [&](uint32_t word, int shift, int bits, bool is_signed, double v) {
        const double scale = (1 << (is_signed ? bits - 1 : bits)) - 1;
        const uint32_t field = packed[word] >> shift & ((1u << bits) - 1);
        const double value = is_signed && field >> (bits - 1) ? double(field) - (1 << bits) : field;
        EXPECT_NEAR(value, std::clamp(v, is_signed ? -1.0 : 0.0, 1.0) * scale, 0.51)
            << "field at " << shift << " of word " << word;
    };
    for (int i = 0; i < 4; ++i) {
        const double v = n[9 + i] * 0.5;
        expect_field(0, i * 8, 8, true, v);
        expect_field(1, i * 8, 8, false, v);
        if (i < 2) {
            expect_field(2, i * 16, 16, true, v);
            expect_field(3, i * 16, 16, false, v);
        } else {
            const uint32_t half = packed[4] >> (i == 2 ? 0 : 16) & 0xffff;
            EXPECT_NEAR(HalfOf(half), v, std::fabs(v) * 0x1p-10 + 0x1p-24);
        }
    }
    const uint32_t bits = packed[5];
    EXPECT_EQ(bits, std::bit_cast<uint32_t>(n[13]) * 2654435761u);
    const auto snorm = [](int value, double scale) { return std::max(value / scale, -1.0); };
    const uint32_t half = bits & 0xbfffbfff;
    const double unpacked[] = {snorm(static_cast<int8_t>(bits), 127),
                               snorm(static_cast<int8_t>(bits >> 24), 127),
                               (bits >> 8 & 255) / 255.0,
                               (bits >> 16 & 255) / 255.0,
                               snorm(static_cast<int16_t>(bits >> 16), 32767),
                               (bits & 65535) / 65535.0,
                               HalfOf(half & 0xffff),
                               HalfOf(half >> 16)};
    for (int i = 0; i < 8; ++i) {
        const double exact = unpacked[i];
        // Denormal halves may be flushed to zero.
        const double flushed = i >= 6 && std::fabs(exact) < 0x1p-14 ? std::fabs(exact) : 0;
        EXPECT_NEAR(std::bit_cast<float>(packed[6 + i]), exact,
                    std::max(std::fabs(exact) * 0x1p-21, flushed))
            << "unpacked " << i << " of " << bits;
    }
}

TEST_F(KernelsGeometryTest, VectorsMatricesAndPacking) {
    constexpr size_t kCount = 500;
    constexpr size_t kStride = 96;
    std::array buffers = {MakeBuffer(kCount * 16), MakeBuffer(kCount * kStride),
                          MakeBuffer(kCount * 16)};
    std::mt19937 random(7);
    std::uniform_real_distribution<float> draw(-1, 1);
    std::vector<Numbers> all(kCount);
    for (Numbers& n : all) {
        for (float& number : n) {
            number = draw(random);
        }
        // A heavy diagonal: every leading matrix has an inverse of small numbers.
        for (int i = 0; i < 4; ++i) {
            n[i * 5] += n[i * 5] < 0 ? -3.5f : 3.5f;
        }
    }
    std::memcpy(buffers[0].words, all.data(), kCount * sizeof(Numbers));
    Run(MakePipeline(spirv::kGeometry, buffers), (kCount + 63) / 64);
    for (size_t i = 0; i < kCount && !HasFailure(); ++i) {
        SCOPED_TRACE(i);
        const std::vector<double> expected = Geometry(all[i]);
        ASSERT_LE(expected.size(), kStride);
        for (size_t j = 0; j < expected.size(); ++j) {
            // Sums of products of numbers below 5; the determinants' terms reach 5^4.
            const double terms = j == 20 ? 625 : 64;
            EXPECT_NEAR(buffers[1].floats()[i * kStride + j], expected[j], terms * 0x1p-20)
                << "result " << j;
        }
        ExpectPacked(all[i], buffers[2].words + i * 16);
    }
}

}  // namespace
}  // namespace fornax::test

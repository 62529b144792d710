// The float functions of GLSL through the loader, within what Vulkan's "Precision and Operation of
// SPIR-V Instructions" allows, against the host's double. NaN and the cases that the appendix
// leaves open are not compared; codegen/math_test.cpp looks closer at every function's own error.
#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "tests/loader/shaders/floats.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

using KernelsFloatTest = VulkanTest;

constexpr double kAny = -1;  // an allowance: the appendix says nothing about these arguments
constexpr double kPi = 3.14159265358979323846;
constexpr double kMax = 0x1.fffffep127;
constexpr double kMin = 0x1p-126;

double Ulp(double exact) {
    return std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
}

struct Want {
    const char* name;
    double exact;
    double allowed;  // absolute, or kAny
};

// The error of a function of arguments that were themselves rounded is inherited: the appendix
// defines many functions by others.
std::vector<Want> Record(float fx, float fy, float fz) {
    const double x = fx;
    const double y = fy;
    const double z = fz;
    std::vector<Want> wants;
    const auto add = [&](const char* name, double exact, double ulps, double absolute = 0,
                         bool defined = true) {
        const double bound = std::max(std::isfinite(exact) ? ulps * Ulp(exact) : 0, absolute);
        wants.push_back({name, exact, defined ? bound : kAny});
    };
    const bool in_pi = std::fabs(x) <= kPi;
    const bool in_one = std::fabs(x) <= 1;
    add("sin", std::sin(x), 0, 0x1p-11, in_pi);
    add("cos", std::cos(x), 0, 0x1p-11, in_pi);
    // Inherited from sin(x) / cos(x): far from the poles.
    add("tan", std::tan(x), 0, 0x1p-6, std::fabs(x) < 1.3);
    // Inherited from atan2(x, sqrt(1 - x * x)), whose atan2 has 4096 ULP.
    add("asin", std::asin(x), 4096, 0x1p-11, in_one);
    add("acos", std::acos(x), 4096, 0x1p-11, in_one);
    add("atan", std::atan(x), 4096);
    add("atan2", std::atan2(x, y), 4096, 0, x != 0 || y != 0);
    const double exp_ulps = 3 + 2 * std::fabs(x);
    // Differences of exponentials: the error is that of the larger one.
    const double big = std::exp(std::fabs(x)) / 2;
    // Inherited from (exp(x) -+ exp(-x)) * 0.5: infinite where the exponential is, either next to
    // it.
    const bool infinite = big * 2 > kMax * 1.001;
    const bool finite = big * 2 < kMax * 0.999;
    add("sinh", infinite ? std::copysign(INFINITY, x) : std::sinh(x), 0,
        infinite ? 0 : (exp_ulps + 3) * Ulp(big), infinite || finite);
    add("cosh", infinite ? INFINITY : std::cosh(x), infinite ? 0 : exp_ulps + 3, 0,
        infinite || finite);
    add("tanh", std::tanh(x), 0, std::min(0x1p-7, (2 * exp_ulps + 8) * 0x1p-22), big < kMax);
    // Inherited from log(x + sqrt(x * x + 1)), so absolute near 1.
    add("asinh", std::asinh(x), 8, 0x1p-18 * std::max(std::fabs(x), 1.0), std::fabs(x) < 1e3);
    add("acosh", std::acosh(x), 8, 0x1p-10, x >= 1 && x < 1e3);
    add("atanh", std::atanh(x), 8, 0x1p-10, std::fabs(x) < 0.99);
    // exp2(y * log2(x)), with 3 ULP for log2.
    const double log_error = 3 * Ulp(std::log2(x)) + 0x1p-21;
    const double power = std::pow(x, y);
    add("pow", power, 0,
        power * ((3 + 2 * std::fabs(y * std::log2(x))) * 0x1p-22 + std::fabs(y) * log_error * 2),
        x > 0 && power > kMin && power < kMax / 2 && std::fabs(y) * log_error < 0.1);
    const auto normal = [](double v) { return std::fabs(v) > kMin && std::fabs(v) < kMax / 2; };
    add("exp", std::exp(x), exp_ulps, 0, normal(std::exp(x)));
    add("log", std::log(x), 3, 0x1p-21, x >= kMin);
    add("exp2", std::exp2(x), exp_ulps, 0, normal(std::exp2(x)));
    add("log2", std::log2(x), 3, 0x1p-21, x >= kMin);
    // Inherited from 1 / inversesqrt(x).
    add("sqrt", std::sqrt(x), 5, 0, x >= kMin);
    add("inversesqrt", 1 / std::sqrt(x), 2, 0, x >= kMin);
    const bool not_tiny = x == 0 || std::fabs(x) >= kMin;  // denormals may be flushed
    const auto exact = [&](const char* name, double value, bool defined = true) {
        add(name, value, 0, 0, defined && not_tiny);
    };
    exact("floor", std::floor(x));
    exact("ceil", std::ceil(x));
    add("fract", fx - std::floor(fx), 1, 0, not_tiny);
    // A half may go either way.
    add("round", std::round(x), 0, std::fabs(x - std::trunc(x)) == 0.5 ? 1 : 0, not_tiny);
    exact("roundEven", std::nearbyint(x));
    exact("trunc", std::trunc(x));
    // x - y * trunc(x / y) with 2.5 ULP for the division: where the quotient is far from whole.
    const double quotient = x / y;
    const double part = quotient - std::floor(quotient);
    add("mod", x - y * std::floor(quotient), 0, (std::fabs(x) + std::fabs(y)) * 0x1p-21,
        normal(quotient) && not_tiny && normal(y) && part > 1e-3 && part < 0.999 &&
            std::fabs(quotient) < 1000);
    const double mix_error = (std::fabs(x) * (1 + std::fabs(z)) + std::fabs(y * z)) * 0x1p-21;
    add("mix", x * (1 - z) + y * z, 0, mix_error + kMin, mix_error < 1e30);
    exact("step", y < x ? 0 : 1, y == 0 || std::fabs(y) >= kMin);
    const double t = std::clamp((z - x) / (y - x), 0.0, 1.0);
    const double cancel = (std::fabs(x) + std::fabs(y) + std::fabs(z)) / std::fabs(y - x);
    add("smoothstep", t * t * (3 - 2 * t), 0, 0x1p-20 * (1 + cancel),
        x < y && cancel < 1e3 && normal(y - x));
    const double product_sum = std::fabs(x * y) + std::fabs(z);
    add("fma", x * y + z, 0, product_sum * 0x1p-22 + kMin, product_sum < kMax / 2);
    exact("abs", std::fabs(x));
    exact("sign", (x > 0) - (x < 0));
    const bool y_not_tiny = y == 0 || std::fabs(y) >= kMin;
    exact("min", std::min(x, y), y_not_tiny);
    exact("max", std::max(x, y), y_not_tiny);
    exact("clamp", std::clamp(x, -2.0, 3.0));
    add("radians", x * (kPi / 180), 2, 0, normal(x * (kPi / 180)));
    add("degrees", x * (180 / kPi), 2, 0, normal(x) && normal(x * (180 / kPi)));
    add("divide", quotient, 2.5, 0,
        normal(quotient) && std::fabs(y) >= kMin && std::fabs(y) <= 0x1p126 && not_tiny);
    exact("select", z > 0 ? y : x, y_not_tiny && (z == 0 || std::fabs(z) >= kMin));
    exact("isnan", 0);
    exact("isinf", std::isinf(fx) ? 1 : 0);
    int exponent = 0;
    const double significand = std::frexp(x, &exponent);
    exact("frexp", significand, std::isfinite(x));
    exact("frexp exponent", exponent, std::isfinite(x));
    exact("modf", x - std::trunc(x), std::isfinite(x));
    exact("modf whole", std::trunc(x));
    const double scaled = std::ldexp(y, static_cast<int>(std::clamp(z, -100.0, 100.0)));
    exact("ldexp", scaled, normal(scaled) && y_not_tiny);
    exact("bits", -x);
    return wants;
}

TEST_F(KernelsFloatTest, FunctionsKeepVulkansPrecision) {
    constexpr size_t kResults = 48;
    const std::vector<float> edges = {
        0.0f,   -0.0f,  1.0f,   -1.0f,      0.5f,        -0.5f,      1.5f,      -1.5f,
        2.5f,   -2.5f,  3.0f,   -3.0f,      0x1p-126f,   -0x1p-126f, 0x1p-20f,  -0x1p-20f,
        1e10f,  -1e10f, 100.0f, -100.0f,    8388607.5f,  0x1p24f,    0x1p31f,   -0x1p31f,
        1e30f,  -1e30f, kMax,   -kMax,      INFINITY,    -INFINITY,  0.9999f,   -0.9999f,
        1.001f, 88.0f,  -87.0f, 3.1415925f, -3.1415925f, 1.5707963f, 0x1.8p-3f, 10.0f};
    std::vector<std::array<float, 3>> triples;
    for (size_t i = 0; i < edges.size() * edges.size(); ++i) {
        triples.push_back(
            {edges[i % edges.size()], edges[i / edges.size()], edges[i * 7 % edges.size()]});
    }
    std::mt19937 random(6);
    const auto draw = [&](float low, float high) {
        return std::uniform_real_distribution<float>(low, high)(random);
    };
    for (int i = 0; i < 4000; ++i) {
        const float reach = i % 4 == 0 ? 1.0f : i % 4 == 1 ? 4.0f : i % 4 == 2 ? 50.0f : 900.0f;
        triples.push_back({draw(-reach, reach), draw(-reach, reach), draw(-2, 2)});
    }
    std::array buffers = {MakeBuffer(triples.size() * 3), MakeBuffer(triples.size() * kResults)};
    std::memcpy(buffers[0].words, triples.data(), triples.size() * 12);
    Run(MakePipeline(spirv::kFloats, buffers), static_cast<uint32_t>(triples.size() + 63) / 64);

    std::array<size_t, kResults> compared = {};
    std::array<size_t, kResults> wrong = {};
    for (size_t i = 0; i < triples.size(); ++i) {
        const auto& [x, y, z] = triples[i];
        const std::vector<Want> wants = Record(x, y, z);
        ASSERT_EQ(wants.size(), kResults);
        for (size_t j = 0; j < kResults; ++j) {
            const Want& want = wants[j];
            if (want.allowed == kAny || std::isnan(want.exact)) {
                continue;
            }
            ++compared[j];
            const double result = buffers[1].floats()[i * kResults + j];
            const bool right =
                result == want.exact || std::fabs(result - want.exact) <= want.allowed;
            if (!right && ++wrong[j] <= 3) {
                ADD_FAILURE() << want.name << " of " << x << ", " << y << ", " << z << " is "
                              << result << ", and not " << want.exact << " within " << want.allowed;
            }
        }
    }
    for (size_t j = 0; j < kResults; ++j) {
        EXPECT_GT(compared[j], 500u) << "Too few arguments test result " << j << ".";
    }
}

}  // namespace
}  // namespace fornax::test

// Every transcendental function against long double over special, random and evenly spread
// arguments, on each target and vector width, with the allowance of Vulkan's "Precision and
// Operation of SPIR-V Instructions" or a tighter one of our own. Prints the worst errors.
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "compiler/kernel/codegen/op_harness.h"
#include "compiler/kernel/codegen/test_targets.h"

namespace fornax::kernel {
namespace {

using ir::Op;
using ir::Type;

constexpr uint64_t kCount = 1 << 16;

struct Case {
    const char* name;
    Op op;
    std::function<long double(long double, long double)> reference;
    float low, high;  // where arguments are spread evenly
    // The error allowed: so many ULP of the exact result, or so much absolutely if that is more.
    double ulp;
    double absolute;
    bool two = false;
    // Arguments in magnitude above this are only checked to give at most `bound`.
    double range = INFINITY;
    double bound = 1;
    // On targets of 512 bits: so many more ULP for 1 of the argument's size. Vulkan allows 2 for
    // exp.
    double ulp_by_size = 0;
    // Arguments in magnitude above this give infinity, though the reference is finite; next to it
    // either may be.
    double overflow = INFINITY;
};

// The spacing of f32 at the exact value; denormals have that of the smallest normal numbers.
long double UlpAt(long double exact) {
    int exponent = std::max(std::ilogb(exact), -126);
    return std::ldexp(1.0L, exponent - 23);
}

std::vector<float> Arguments(const Case& test, uint32_t seed) {
    static const float kSpecial[] = {0.0f,
                                     -0.0f,
                                     1.0f,
                                     -1.0f,
                                     0.5f,
                                     -0.5f,
                                     2.0f,
                                     -2.0f,
                                     INFINITY,
                                     -INFINITY,
                                     NAN,
                                     0x1p-126f,
                                     -0x1p-126f,
                                     0x1p-149f,
                                     -0x1p-149f,
                                     0x1.fffffep127f,
                                     -0x1.fffffep127f,
                                     0x1.fffffep-1f,
                                     0x1.000002p0f,
                                     88.72284f,
                                     -87.3365f,
                                     -103.97f,
                                     128.0f,
                                     -126.0f,
                                     -149.0f,
                                     1.5707964f,
                                     3.1415927f,
                                     4.712389f,
                                     6.2831855f,
                                     1e-4f,
                                     0x1p24f,
                                     10.0f};
    std::vector<float> values(kCount);
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> spread(test.low, test.high);
    for (size_t i = 0; i < values.size(); ++i) {
        if (i < std::size(kSpecial) * std::size(kSpecial)) {
            values[i] =
                seed ? kSpecial[i / std::size(kSpecial)] : kSpecial[i % std::size(kSpecial)];
        } else if (i % 4 == 0) {
            values[i] = std::bit_cast<float>(static_cast<uint32_t>(random()));
        } else {
            values[i] = spread(random);
        }
    }
    return values;
}

// The error of `result` as a multiple of what is allowed; infinite where the kind of number is
// wrong.
double ErrorOf(const Case& test, float x, float y, float result, double& ulps) {
    ulps = 0;
    if (std::fabs(x) > test.range && !std::isinf(x) && !std::isnan(x)) {
        return std::fabs(result) <= test.bound ? 0 : INFINITY;
    }
    if (std::fabs(x) > test.overflow * (1 - 1e-6) && std::isinf(result)) {
        return std::signbit(result) == std::signbit(test.reference(x, y)) ? 0 : INFINITY;
    }
    if (std::fabs(x) > test.overflow * (1 + 1e-6)) {
        return INFINITY;
    }
    long double exact = test.reference(x, y);
    if (std::isnan(exact)) {
        return std::isnan(result) ? 0 : INFINITY;
    }
    float rounded = static_cast<float>(exact);
    if (std::isinf(rounded) || std::isinf(result)) {
        // Near the end of the range one ULP decides between infinity and the largest number.
        bool near_end = std::fabs(exact) > 0x1.fffffp127L && std::fabs(result) > 0x1.fffffp127f;
        return result == rounded || near_end ? 0 : INFINITY;
    }
    if (std::isnan(result)) {
        return INFINITY;
    }
    long double error = std::fabs(static_cast<long double>(result) - exact);
    if (exact == 0) {
        return error == 0 || error <= test.absolute ? 0 : INFINITY;
    }
    ulps = static_cast<double>(error / UlpAt(exact));
    const long double allowed_ulp = test.ulp + test.ulp_by_size * std::fabs(x);
    long double allowed = std::max<long double>(allowed_ulp * UlpAt(exact), test.absolute);
    return static_cast<double>(error / allowed);
}

std::vector<Case> Cases() {
    using L = long double;
    auto one = [](auto function) {
        return [function](L x, L) { return static_cast<L>(function(x)); };
    };
    // Tolerances: ours, each well inside Vulkan's.
    return {
        {"exp", Op::kExp, one([](L x) { return std::exp(x); }), -105, 90, 2, 0, false, INFINITY, 1,
         1.5},
        {"exp2", Op::kExp2, one([](L x) { return std::exp2(x); }), -152, 130, 2, 0},
        {"log", Op::kLog, one([](L x) { return std::log(x); }), 0, 4, 2, 0},
        {"log2", Op::kLog2, one([](L x) { return std::log2(x); }), 0, 4, 2.5, 0},
        {"pow", Op::kPow, [](L x, L y) { return std::exp2(y * std::log2(x)); }, 0, 30, 2, 0, true},
        {"sin", Op::kSin, one([](L x) { return std::sin(x); }), -100, 100, 2, 0x1p-30, false,
         0x1p19},
        {"cos", Op::kCos, one([](L x) { return std::cos(x); }), -100, 100, 2, 0x1p-30, false,
         0x1p19},
        // Near its poles tan multiplies what is left of the argument's error.
        {"tan", Op::kTan, one([](L x) { return std::tan(x); }), -1.5f, 1.5f, 4, 0x1p-30, false,
         0x1p15, INFINITY},
        {"asin", Op::kASin, one([](L x) { return std::asin(x); }), -1, 1, 2.5, 0},
        {"acos", Op::kACos, one([](L x) { return std::acos(x); }), -1, 1, 2, 0},
        {"atan", Op::kATan, one([](L x) { return std::atan(x); }), -10, 10, 3, 0},
        {"atan2", Op::kATan2, [](L y, L x) { return std::atan2(y, x); }, -10, 10, 3, 0, true},
        {"sinh", Op::kSinh, one([](L x) { return std::sinh(x); }), -90, 90, 3, 0, false, INFINITY,
         1, 0, 88.7228391},
        {"cosh", Op::kCosh, one([](L x) { return std::cosh(x); }), -90, 90, 3, 0, false, INFINITY,
         1, 0, 88.7228391},
        {"tanh", Op::kTanh, one([](L x) { return std::tanh(x); }), -10, 10, 6, 0},
        {"asinh", Op::kASinh, one([](L x) { return std::asinh(x); }), -100, 100, 4, 0},
        {"acosh", Op::kACosh, one([](L x) { return std::acosh(x); }), 1, 100, 4, 0},
        {"atanh", Op::kATanh, one([](L x) { return std::atanh(x); }), -1, 1, 4, 0},
        {"rsqrt", Op::kRSqrt, one([](L x) { return 1 / std::sqrt(x); }), 0, 100, 2, 0},
        {"sqrt", Op::kSqrt, one([](L x) { return std::sqrt(x); }), 0, 100, 0.5, 0},
    };
}

class MathTest : public testing::TestWithParam<size_t> {};

TEST_P(MathTest, MeetsItsPrecision) {
    Case test = Cases()[GetParam()];
    std::vector<float> x = Arguments(test, 0);
    std::vector<float> y = Arguments(test, 1);
    std::vector<float> first;
    for (const TargetInfo& target : TestTargets()) {
        Case bounds = test;
        if (target.vector_bits < 512) {
            bounds.ulp_by_size = 0;
        }
        if (target.vector_bits == 128) {
            // Without FMA the reductions lose digits: what Vulkan asks for is left.
            bounds.ulp = test.ulp * 16;
            bounds.absolute = std::max(test.absolute, 0x1p-22);
            if (std::isfinite(test.range)) {
                bounds.range = 3.1415927;
            }
        }
        std::vector<float> of_target;
        for (uint32_t lanes : {0u, 4u, 8u, 16u, 32u, 64u}) {
            std::vector<Type> types(test.two ? 2 : 1, Type::kF32);
            auto compiled = CompiledOp::Create(target, {test.op, types, {Type::kF32}, {}}, lanes);
            ASSERT_TRUE(compiled.ok()) << compiled.error().message;
            if (lanes == 16 && !compiled->assembly().empty()) {
                std::printf("%s\n", compiled->assembly().c_str());
            }
            std::vector<float> result(kCount);
            const void* inputs[] = {x.data(), y.data()};
            void* outputs[] = {result.data()};
            compiled->Run(inputs, outputs, kCount);
            if (lanes != 0) {
                // Every width runs the same operations.
                for (size_t i = 0; i < kCount; ++i) {
                    bool both_nan = std::isnan(result[i]) && std::isnan(of_target[i]);
                    ASSERT_TRUE(both_nan || result[i] == of_target[i])
                        << test.name << "(" << x[i] << ", " << y[i] << ") is " << result[i]
                        << " in " << lanes << " lanes and " << of_target[i] << " in one";
                }
                continue;
            }
            of_target = result;
            double worst = 0, worst_ulps = 0;
            size_t worst_at = 0;
            for (size_t i = 0; i < kCount; ++i) {
                double ulps = 0;
                double error = ErrorOf(bounds, x[i], y[i], result[i], ulps);
                if (error > worst) {
                    worst = error;
                    worst_at = i;
                }
                worst_ulps = std::max(worst_ulps, ulps);
            }
            std::printf("%-6s %3u bits: worst %.3f ULP, %.3f of what is allowed at (%a, %a)\n",
                        test.name, target.vector_bits, worst_ulps, worst, x[worst_at], y[worst_at]);
            EXPECT_LE(worst, 1) << test.name << "(" << x[worst_at] << ", " << y[worst_at]
                                << ") gives " << result[worst_at] << " on " << target.cpu_name;
        }
    }
}

// Every nth float of all there are, on this machine's own target. FORNAX_MATH_TEST_STEP=1 tests
// every one (minutes a function).
TEST_P(MathTest, MeetsItsPrecisionOnEveryNthFloat) {
    Case test = Cases()[GetParam()];
    if (TestTargets()[0].vector_bits < 512) {
        test.ulp_by_size = 0;
    }
    if (test.two) {
        GTEST_SKIP() << "has two arguments";
    }
    const char* text = std::getenv("FORNAX_MATH_TEST_STEP");
    const uint64_t step = text ? std::max(1, std::atoi(text)) : 8191;
    auto compiled =
        CompiledOp::Create(TestTargets()[0], {test.op, {Type::kF32}, {Type::kF32}, {}}, 16);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    std::vector<float> x(kCount), result(kCount);
    double worst = 0, worst_ulps = 0;
    float worst_at = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX;) {
        for (float& value : x) {
            value =
                std::bit_cast<float>(static_cast<uint32_t>(std::min<uint64_t>(bits, UINT32_MAX)));
            bits += step;
        }
        const void* inputs[] = {x.data()};
        void* outputs[] = {result.data()};
        compiled->Run(inputs, outputs, kCount);
        for (size_t i = 0; i < kCount; ++i) {
            double ulps = 0;
            double error = ErrorOf(test, x[i], 0, result[i], ulps);
            if (error > worst) {
                worst = error;
                worst_at = x[i];
            }
            worst_ulps = std::max(worst_ulps, ulps);
        }
    }
    std::printf("%-6s worst %.3f ULP, %.3f of what is allowed at %a\n", test.name, worst_ulps,
                worst, worst_at);
    EXPECT_LE(worst, 1) << test.name << "(" << worst_at << ")";
}

INSTANTIATE_TEST_SUITE_P(Functions,
                         MathTest,
                         testing::Range<size_t>(0, Cases().size()),
                         [](const auto& info) { return std::string(Cases()[info.param].name); });

// Programs rely on these, though Vulkan does not promise them.
TEST(MathExact, PowersOfTwoAndFixedPoints) {
    struct Point {
        Op op;
        float x, y, result;
    };
    std::vector<Point> points = {
        {Op::kCos, 0, 0, 1},   {Op::kSin, 0, 0, 0},     {Op::kTan, 0, 0, 0},
        {Op::kExp, 0, 0, 1},   {Op::kLog, 1, 0, 0},     {Op::kASin, 0, 0, 0},
        {Op::kACos, 1, 0, 0},  {Op::kATan, 0, 0, 0},    {Op::kATan2, 0, 1, 0},
        {Op::kSinh, 0, 0, 0},  {Op::kCosh, 0, 0, 1},    {Op::kTanh, 0, 0, 0},
        {Op::kPow, 3, 2, 9},   {Op::kPow, 10, 3, 1000}, {Op::kPow, 0, 2, 0},
        {Op::kPow, 7, 0, 1},   {Op::kRSqrt, 4, 0, 0.5}, {Op::kRSqrt, 0.0625f, 0, 4},
        {Op::kTanh, 20, 0, 1},
    };
    for (int n = -149; n <= 127; ++n) {
        float power = std::ldexp(1.0f, n);
        points.push_back({Op::kExp2, static_cast<float>(n), 0, power});
        points.push_back({Op::kLog2, power, 0, static_cast<float>(n)});
        points.push_back({Op::kPow, 2, static_cast<float>(n), power});
        points.push_back({Op::kPow, power, 1, power});
    }
    for (const TargetInfo& target : TestTargets()) {
        std::map<Op, CompiledOp> compiled;
        for (const Point& point : points) {
            auto it = compiled.find(point.op);
            if (it == compiled.end()) {
                bool two = point.op == Op::kPow || point.op == Op::kATan2;
                std::vector<Type> types(two ? 2 : 1, Type::kF32);
                auto code = CompiledOp::Create(target, {point.op, types, {Type::kF32}, {}}, 16);
                ASSERT_TRUE(code.ok()) << code.error().message;
                it = compiled.emplace(point.op, std::move(*code)).first;
            }
            std::vector<float> x(64, point.x), y(64, point.y), result(64);
            const void* inputs[] = {x.data(), y.data()};
            void* outputs[] = {result.data()};
            it->second.Run(inputs, outputs, 64);
            EXPECT_EQ(result[0], point.result) << ir::InfoOf(point.op).text << "(" << point.x
                                               << ", " << point.y << ") on " << target.cpu_name;
        }
    }
}

}  // namespace
}  // namespace fornax::kernel

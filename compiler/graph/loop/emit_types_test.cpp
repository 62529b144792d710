// Element types and scalar functions on a device, over special and random values.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/graph/kernel_check.h"

namespace fornax::graph::loop {
namespace {

using test::Buffers;
using test::Tolerance;

constexpr ElementType kTypes[] = {
    ElementType::kBool,       ElementType::kI2,     ElementType::kI4,
    ElementType::kI8,         ElementType::kI16,    ElementType::kI32,
    ElementType::kI64,        ElementType::kU2,     ElementType::kU4,
    ElementType::kU8,         ElementType::kU16,    ElementType::kU32,
    ElementType::kU64,        ElementType::kF4E2M1, ElementType::kF8E4M3FN,
    ElementType::kF8E4M3FNUZ, ElementType::kF8E5M2, ElementType::kF8E5M2FNUZ,
    ElementType::kF8E8M0,     ElementType::kF16,    ElementType::kBF16,
    ElementType::kF32,        ElementType::kF64};

constexpr size_t kCount = 4096;

template <typename T>
void Append(std::vector<uint8_t>& bytes, T value) {
    const auto* data = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), data, data + sizeof(T));
}

// All codes of small types, else special values and random ones of all magnitudes.
std::vector<uint8_t> ValuesOf(ElementType type, uint32_t seed = 1) {
    std::mt19937_64 random(seed);
    const size_t width = BytesOf(type);
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i < kCount; ++i) {
        uint64_t bits = random();
        if (type == ElementType::kBool) {
            bits &= 1;
        } else if (IsFloat(type) && width >= 4) {
            // Halfway between numbers of narrower types, and near it.
            constexpr double kSpecial[] = {
                0.0,        -0.0,     1.0,          -1.0,         INFINITY,      -INFINITY,
                NAN,        65504,    65519.99,     65520,        448,           464,
                465,        57344,    61440,        0x1p-126,     0x1p-133,      0x1p-134,
                0x1.8p-134, 0x1p-149, 0x1p-127,     0x1.8p-128,   0x1.8p-127,    0x1.7p-128,
                0x1.8p127,  0x1p127,  2147483648.0, 4294967296.0, -2147483648.0, -2147483904.0,
                0x1p63,     0x1p64,   -0x1p63,      127.5,        128,           255.5,
                256,        -0.5,     0.5,          1.5,          2.5,           5,
                7,          0.25,     0.75};
            double value = 0;
            if (i < std::size(kSpecial)) {
                value = kSpecial[i];
            } else {
                const int exponent =
                    static_cast<int>(random() % (i % 2 == 0 ? 24 : 300)) - (i % 2 == 0 ? 12 : 150);
                const auto mantissa = static_cast<double>(random() % (i % 3 == 0 ? 256 : 1U << 30));
                value = std::ldexp(1 + mantissa / (i % 3 == 0 ? 256 : 0x1p30), exponent);
                value = random() % 2 == 0 ? value : -value;
            }
            bits = width == 4 ? std::bit_cast<uint32_t>(static_cast<float>(value))
                              : std::bit_cast<uint64_t>(value);
        } else if (width >= 4) {
            constexpr uint64_t kSpecial[] = {0,
                                             1,
                                             ~uint64_t{0},
                                             uint64_t{1} << 63,
                                             uint64_t{1} << 31,
                                             0x7FFFFFFF,
                                             ~uint64_t{0} >> 1,
                                             0xFFFFFFFF80000000,
                                             2,
                                             3};
            bits = i < std::size(kSpecial) ? kSpecial[i] : bits >> random() % 64;
            bits = random() % 2 == 0 ? bits : ~bits;
        } else if (width == 1) {
            bits = i;
        }
        // What the host may not write is no value: the upper bits of small types.
        if (BitsOf(type) < 8 && type != ElementType::kBool) {
            uint8_t byte = 0;
            const auto code = static_cast<uint8_t>(bits & ((1U << BitsOf(type)) - 1));
            WriteElement(type, ReadElement(type, &code), &byte);
            bits = byte;
        }
        for (size_t b = 0; b < width; ++b) {
            bytes.push_back(static_cast<uint8_t>(bits >> 8 * b));
        }
    }
    return bytes;
}

class EmitTypesTest : public test::KernelCheck {
  protected:
    // Every output exactly as the interpreter has it, but for the codes of NaN.
    static void CheckExactly(const std::string& text, const Buffers& inputs) {
        const Kernel kernel = Parse(text);
        Buffers expected = inputs;
        for (size_t i = inputs.size(); i < kernel.buffers.size(); ++i) {
            expected.emplace_back(kCount * BytesOf(kernel.buffers[i].type.element));
        }
        Buffers actual = expected;
        ASSERT_TRUE(Interpret(kernel, {}, expected).ok());
        RunOnDevice(kernel, {}, actual);
        if (HasFatalFailure()) {
            return;
        }
        for (size_t b = inputs.size(); b < kernel.buffers.size(); ++b) {
            const ElementType type = kernel.buffers[b].type.element;
            const size_t width = BytesOf(type);
            int differences = 0;
            for (size_t i = 0; i < kCount && differences < 3; ++i) {
                const uint8_t *want = &expected[b][i * width], *have = &actual[b][i * width];
                const Scalar a = ReadElement(type, want), c = ReadElement(type, have);
                const bool nan = a.is_float && std::isnan(a.number) && std::isnan(c.number);
                if (!nan && std::memcmp(want, have, width) != 0) {
                    ++differences;
                    std::string from;
                    for (size_t k = 0; k < inputs.size(); ++k) {
                        const ElementType t = kernel.buffers[k].type.element;
                        const Scalar s = ReadElement(t, &inputs[k][i * BytesOf(t)]);
                        from += fmt::format(" {}", s.is_float ? fmt::format("{:a}", s.number)
                                                              : fmt::format("{}", s.integer));
                    }
                    ADD_FAILURE() << kernel.name << " " << kernel.buffers[b].name << " of" << from
                                  << " is "
                                  << (c.is_float ? fmt::format("{:a}", c.number)
                                                 : fmt::format("{}", c.integer))
                                  << ", not "
                                  << (a.is_float ? fmt::format("{:a}", a.number)
                                                 : fmt::format("{}", a.integer));
                }
            }
        }
    }
};

TEST_F(EmitTypesTest, Casts) {
    for (const ElementType from : kTypes) {
        for (const char* how : {"", " saturate", " up", " saturate down"}) {
            const bool rounds = BitsOf(from) >= 16 && IsFloat(from);
            if (!rounds && !std::string_view(how).empty()) {
                continue;
            }
            std::string parameters, body, stores;
            int next = 1;
            for (const ElementType to : kTypes) {
                parameters += fmt::format(", out y_{0}: {0}[{1}]", Name(to), kCount);
                body += fmt::format("%{} = cast {} %0{}\n", next, Name(to), how);
                stores += fmt::format("store y_{}[$i] = %{}\n", Name(to), next++);
            }
            CheckExactly(fmt::format("kernel from_{0}(in x: {0}[{1}]{2})\n  parallel $i < {1}\n"
                                     "%0 = load x[$i]\n{3}",
                                     Name(from), kCount, parameters, body + stores),
                         {ValuesOf(from)});
        }
    }
}

TEST_F(EmitTypesTest, IntegerFunctions) {
    for (const ElementType type : kTypes) {
        if (IsFloat(type)) {
            continue;
        }
        std::string parameters, body, stores;
        int next = 2;
        for (size_t i = 0; i <= static_cast<size_t>(kLastScalarFunction); ++i) {
            const auto function = static_cast<ScalarFunction>(i);
            if (!Accepts(function, type) || function == ScalarFunction::kSelect) {
                continue;
            }
            parameters += fmt::format(", out {0}: {1}[{2}]", Name(function),
                                      Name(ResultType(function, type)), kCount);
            body += fmt::format("%{} = {} %0{}\n", next, Name(function),
                                ArgumentCount(function) == 2 ? ", %1" : "");
            stores += fmt::format("store {}[$i] = %{}\n", Name(function), next++);
        }
        std::vector<uint8_t> b = ValuesOf(type, 2);
        if (BitsOf(type) == 8) {  // all codes in another order, small ones often
            for (size_t i = 0; i < b.size(); ++i) {
                b[i] = static_cast<uint8_t>(i / 256);
            }
        } else if (type != ElementType::kBool) {
            for (size_t i = 0; i < kCount; i += 3) {  // divisors and distances
                WriteElement(type, Scalar::Integer(static_cast<int64_t>(i / 3 % 80) - 8),
                             &b[i * BytesOf(type)]);
            }
        }
        CheckExactly(
            fmt::format("kernel of_{0}(in x: {0}[{1}], in z: {0}[{1}]{2})\n  parallel $i < {1}\n"
                        "%0 = load x[$i]\n%1 = load z[$i]\n{3}",
                        Name(type), kCount, parameters, body + stores),
            {ValuesOf(type), b});
    }
}

TEST_F(EmitTypesTest, Bitcasts) {
    for (const ElementType from : kTypes) {
        std::string parameters, body, stores;
        int next = 1;
        for (const ElementType to : kTypes) {
            if (BytesOf(to) != BytesOf(from) || BitsOf(from) < 8 || BitsOf(to) < 8) {
                continue;
            }
            parameters += fmt::format(", out y_{0}: {0}[{1}]", Name(to), kCount);
            body += fmt::format("%{} = bitcast {} %0\n", next, Name(to));
            stores += fmt::format("store y_{}[$i] = %{}\n", Name(to), next++);
        }
        if (next > 1) {
            CheckExactly(fmt::format("kernel bits_{0}(in x: {0}[{1}]{2})\n  parallel $i < {1}\n"
                                     "%0 = load x[$i]\n{3}",
                                     Name(from), kCount, parameters, body + stores),
                         {ValuesOf(from)});
        }
    }
}

// --- Functions of floats -------------------------------------------------------------------------

struct FunctionCase {
    ScalarFunction function;
    double low, high;  // of random arguments
    double ulp;        // the bound of the error
};

// The distance in units of the last place of the expected value.
double UlpsBetween(double expected, float actual) {
    const auto rounded = static_cast<float>(expected);
    if (std::isnan(expected) || std::isnan(actual)) {
        return std::isnan(expected) == std::isnan(actual) ? 0 : INFINITY;
    }
    if (rounded == actual) {
        return 0;
    }
    if (std::isinf(rounded) || std::isinf(actual)) {
        return INFINITY;
    }
    int exponent = 0;
    std::frexp(rounded, &exponent);
    return std::abs(expected - actual) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

class FloatFunctions : public EmitTypesTest, public testing::WithParamInterface<FunctionCase> {};

TEST_P(FloatFunctions, AreWithinTheBound) {
    const FunctionCase& c = GetParam();
    // The instructions of GLSL.std.450 are as good as the device makes them.
    if (c.ulp > 2.5 && runner_->device_name().find("Fornax") == std::string::npos) {
        GTEST_SKIP() << "the bound is that of Fornax";
    }
    std::mt19937_64 random(7);
    std::vector<float> special = {
        0.0F,   -0.0F,  1.0F,     -1.0F,     0.5F,        -0.5F,       2.0F,    -2.0F,
        3.0F,   -3.0F,  INFINITY, -INFINITY, NAN,         1e-30F,      -1e-30F, 1e30F,
        -1e30F, 88.0F,  89.0F,    -87.0F,    -104.0F,     1.5F,        2.5F,    -1.5F,
        1e-5F,  -1e-5F, 0.99999F, 1.00001F,  16777216.0F, 16777217.0F, 3.5F,    -7.0F};
    const bool binary = ArgumentCount(c.function) == 2;
    std::vector<uint8_t> x, y;
    std::vector<std::pair<float, float>> values;
    std::uniform_real_distribution<double> uniform(c.low, c.high);
    for (size_t i = 0; i < kCount; ++i) {
        float a = 0, b = 0;
        if (i < special.size() * special.size()) {
            a = special[i % special.size()];
            b = special[i / special.size()];
        } else {
            a = static_cast<float>(uniform(random));
            b = static_cast<float>(uniform(random));
            if (i % 4 == 0) {  // small ones
                a = std::ldexp(a, -static_cast<int>(random() % 20));
            }
        }
        // Greater ones lose more than what is left of them to sines.
        const bool periodic = c.function == ScalarFunction::kSin ||
                              c.function == ScalarFunction::kCos ||
                              c.function == ScalarFunction::kTan;
        if (periodic && std::isfinite(a) && std::abs(a) > 1e5F) {
            a = 0.25F;
        }
        values.emplace_back(a, b);
        Append(x, a);
        Append(y, b);
    }
    const Kernel kernel =
        Parse(fmt::format("kernel k(in x: f32[{0}], in y: f32[{0}], out z: f32[{0}])\n"
                          "  parallel $i < {0}\n%0 = load x[$i]\n%1 = load y[$i]\n"
                          "%2 = {1} %0{2}\nstore z[$i] = %2\n",
                          kCount, Name(c.function), binary ? ", %1" : ""));
    Buffers buffers = {x, y, std::vector<uint8_t>(kCount * 4)};
    RunOnDevice(kernel, {}, buffers);
    if (HasFatalFailure()) {
        return;
    }
    double worst = 0;
    int shown = 0;
    for (size_t i = 0; i < kCount; ++i) {
        float actual = 0;
        std::memcpy(&actual, &buffers[2][i * 4], 4);
        const Scalar arguments[] = {Scalar::Float(values[i].first),
                                    Scalar::Float(values[i].second)};
        // In double, so that the error is that of the device.
        const double expected =
            EvaluateScalar(c.function, ElementType::kF64, std::span(arguments, binary ? 2 : 1))
                .number;
        double ulps = UlpsBetween(expected, actual);
        const auto rounded = static_cast<float>(expected);
        if (rounded == 0 && actual == 0 && std::signbit(rounded) != std::signbit(actual)) {
            ulps = INFINITY;
        }
        worst = std::max(worst, ulps);
        if (ulps > c.ulp && ++shown <= 4) {
            ADD_FAILURE() << Name(c.function) << " of " << values[i].first << " "
                          << (binary ? fmt::format("{}", values[i].second) : "") << " is " << actual
                          << ", not " << rounded << ": " << ulps << " ULP";
        }
    }
    RecordProperty("worst_ulp", fmt::format("{:.2f}", worst));
    fmt::print("{}: {:.2f} ULP\n", Name(c.function), worst);
}

using F = ScalarFunction;
INSTANTIATE_TEST_SUITE_P(EmitTypes,
                         FloatFunctions,
                         testing::Values(FunctionCase{F::kNeg, -9, 9, 0},
                                         FunctionCase{F::kAbs, -9, 9, 0},
                                         FunctionCase{F::kSign, -9, 9, 0},
                                         FunctionCase{F::kFloor, -99, 99, 0},
                                         FunctionCase{F::kCeil, -99, 99, 0},
                                         FunctionCase{F::kRound, -99, 99, 0},
                                         FunctionCase{F::kTrunc, -99, 99, 0},
                                         FunctionCase{F::kSqrt, 0, 99, 1},
                                         FunctionCase{F::kRsqrt, 0, 99, 3},
                                         FunctionCase{F::kReciprocal, -9, 9, 2.5},
                                         FunctionCase{F::kExp, -90, 90, 64},
                                         FunctionCase{F::kExpm1, -20, 90, 64},
                                         FunctionCase{F::kLog, 0, 99, 4},
                                         FunctionCase{F::kLog1p, -1, 99, 4},
                                         FunctionCase{F::kSin, -99, 99, 4},
                                         FunctionCase{F::kCos, -99, 99, 4},
                                         FunctionCase{F::kTan, -99, 99, 4},
                                         FunctionCase{F::kAsin, -1, 1, 4},
                                         FunctionCase{F::kAcos, -1, 1, 4},
                                         FunctionCase{F::kAtan, -9, 9, 4},
                                         FunctionCase{F::kSinh, -9, 9, 80},
                                         FunctionCase{F::kCosh, -9, 9, 80},
                                         FunctionCase{F::kTanh, -9, 9, 6},
                                         FunctionCase{F::kAsinh, -99, 99, 4},
                                         FunctionCase{F::kAcosh, 1, 99, 4},
                                         FunctionCase{F::kAtanh, -1, 1, 4},
                                         FunctionCase{F::kErf, -4, 4, 6},
                                         FunctionCase{F::kSigmoid, -30, 30, 32},
                                         FunctionCase{F::kAdd, -9, 9, 0.5},
                                         FunctionCase{F::kSub, -9, 9, 0.5},
                                         FunctionCase{F::kMul, -9, 9, 0.5},
                                         FunctionCase{F::kDiv, -9, 9, 2.5},
                                         FunctionCase{F::kFloorDiv, -9, 9, 0.5},
                                         FunctionCase{F::kRem, -9, 9, 0},
                                         FunctionCase{F::kMod, -9, 9, 0.5},
                                         FunctionCase{F::kPow, -9, 9, 16},
                                         FunctionCase{F::kMin, -9, 9, 0},
                                         FunctionCase{F::kMax, -9, 9, 0},
                                         FunctionCase{F::kAtan2, -9, 9, 4}),
                         [](const testing::TestParamInfo<FunctionCase>& info) {
                             return std::string(Name(info.param.function));
                         });

// What is clamped to a type's numbers is cast without a test of its range; NaN, and what is clamped
// to more than the type has, are cast as ever.
TEST_F(EmitTypesTest, CastsOfClampedValues) {
    struct Case {
        const char *low, *high, *through, *to;
    };
    for (const Case& c : {Case{"0", "255", "i32", "u8"}, Case{"-128", "127", "i32", "i8"},
                          Case{"-1", "300", "i32", "u8"}, Case{"0", "255.75", "u8", "i32"},
                          Case{"-0.5", "65535", "u16", "i16"}, Case{"3", "7", "u32", "u4"}}) {
        SCOPED_TRACE(fmt::format("{} to {} as {}, {}", c.low, c.high, c.through, c.to));
        CheckExactly(
            fmt::format("kernel clamp(in x: f32[4096], out y: {1}[4096], out z: f32[4096])\n"
                        "  parallel $i0 < 4096\n"
                        "  %0 = load x[$i0]\n"
                        "  %1 = constant f32 {2}\n"
                        "  %2 = max %0, %1\n"
                        "  %3 = constant f32 {3}\n"
                        "  %4 = min %3, %2\n"
                        "  %5 = cast {0} %4\n"
                        "  %6 = cast {1} %5\n"
                        "  %7 = cast f32 %6\n"
                        "  store y[$i0] = %6\n"
                        "  store z[$i0] = %7\n",
                        c.through, c.to, c.low, c.high),
            {ValuesOf(ElementType::kF32)});
    }
}

// Quotients halfway between whole numbers, near that, and at both ends of the clamp.
std::vector<uint8_t> DividendsOf(float divisor) {
    std::vector<uint8_t> bytes = ValuesOf(ElementType::kF32);
    std::mt19937 random(3);
    for (size_t i = kCount / 4; i < kCount; ++i) {
        const auto half = static_cast<float>(static_cast<int>(random() % 1200) - 600) / 2;
        volatile float value = half * divisor;
        for (uint32_t steps = random() % 3; steps > 0; --steps) {
            value = std::nextafter(value, random() % 2 == 0 ? INFINITY : -INFINITY);
        }
        const float written = value;
        std::memcpy(&bytes[i * sizeof(float)], &written, sizeof(float));
    }
    return bytes;
}

// Clamped before they are divided, and back in f32 without an integer between.
TEST_F(EmitTypesTest, QuantisedValues) {
    struct Case {
        int low, high, zero, plus;
        const char *through, *to;
    };
    for (const float divisor : {0.0245745648F, 0.0156862754F, 1.0F, 0.5F, 3.1e-7F, 1e-12F, 7e20F}) {
        for (const Case& c :
             {Case{0, 255, 0, 0, "i32", "u8"}, Case{0, 255, 127, -127, "i32", "u8"},
              Case{-128, 127, -5, 5, "i32", "i8"}, Case{-128, 127, 3, 0, "i16", "i8"},
              Case{0, 65535, 32768, -7, "i32", "u16"}, Case{3, 200, 1, -1, "i32", "u8"},
              Case{0, 300, 5, -5, "i32", "u8"}, Case{0, 15, 8, -8, "u8", "u4"}}) {
            SCOPED_TRACE(fmt::format("{} and {} to {} by {}", c.zero, c.low, c.high, divisor));
            CheckExactly(
                fmt::format("kernel quantise(in x: f32[4096], out y: {1}[4096], out z: f32[4096])\n"
                            "  parallel $i0 < 4096\n"
                            "  %0 = load x[$i0]\n"
                            "  %1 = constant f32 {2}\n"
                            "  %2 = div %0, %1\n"
                            "  %3 = round %2\n"
                            "  %4 = constant f32 {3}\n"
                            "  %5 = add %3, %4\n"
                            "  %6 = constant f32 {4}\n"
                            "  %7 = max %5, %6\n"
                            "  %8 = constant f32 {5}\n"
                            "  %9 = min %7, %8\n"
                            "  %10 = cast {0} %9\n"
                            "  %11 = cast {1} %10\n"
                            "  %12 = cast i32 %11\n"
                            "  %13 = constant i32 {6}\n"
                            "  %14 = sub %12, %13\n"
                            "  %15 = cast f32 %14\n"
                            "  store y[$i0] = %11\n"
                            "  store z[$i0] = %15\n",
                            c.through, c.to, static_cast<double>(divisor), c.zero, c.low, c.high,
                            -c.plus),
                {DividendsOf(divisor)});
        }
    }
}

}  // namespace
}  // namespace fornax::graph::loop

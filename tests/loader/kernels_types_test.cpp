// Arithmetic and conversions of 8-, 16- and 64-bit integers and of f16 and f64 through the loader,
// against the host's own.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/half.h"
#include "tests/loader/shaders/type_arithmetic.spv.h"
#include "tests/loader/shaders/type_conversions.spv.h"
#include "tests/loader/types_fixture.h"

namespace fornax::test {
namespace {

using KernelsTypesTest = TypesTest;

// f16 by its bits; computed in double, which is wide enough for one rounding at the end.
struct Half {
    uint16_t bits = 0;
    explicit Half(uint16_t b) : bits(b) {}
    explicit Half(double value) : bits(DoubleToHalf(value)) {}
    operator double() const { return HalfToDouble(bits); }
};

// What a result may be: its bits, any NaN, or anything.
struct Want {
    enum class Kind : uint8_t { kBits, kHalfNan, kFloatNan, kDoubleNan, kAny } kind;
    uint64_t bits = 0;

    bool Allows(uint64_t result) const {
        switch (kind) {
            case Kind::kBits:
                return result == bits;
            case Kind::kHalfNan:
                return (result & 0x7fff) > 0x7c00 && result <= 0xffff;
            case Kind::kFloatNan:
                return (result & 0x7fffffff) > 0x7f800000 && result <= 0xffffffff;
            case Kind::kDoubleNan:
                return (result & ~0ull >> 1) > 0x7ffull << 52;
            default:
                return true;
        }
    }
};
constexpr Want kAny = {Want::Kind::kAny};

template <typename T>
Want Bits(T value) {
    if constexpr (std::is_same_v<T, Half>) {
        return {std::isnan(value) ? Want::Kind::kHalfNan : Want::Kind::kBits, value.bits};
    } else if constexpr (std::is_same_v<T, float>) {
        return {std::isnan(value) ? Want::Kind::kFloatNan : Want::Kind::kBits,
                std::bit_cast<uint32_t>(value)};
    } else if constexpr (std::is_same_v<T, double>) {
        return {std::isnan(value) ? Want::Kind::kDoubleNan : Want::Kind::kBits,
                std::bit_cast<uint64_t>(value)};
    } else {
        return {Want::Kind::kBits,
                static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(value))};
    }
}

template <typename To, typename From>
Want Converted(From from) {
    if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
        // Beyond the range SPIR-V leaves the result open.
        const double value = std::trunc(static_cast<double>(from));
        const double limit = std::ldexp(1.0, std::numeric_limits<To>::digits);
        if (!(value < limit && value >= (std::is_signed_v<To> ? -limit : 0.0))) {
            return kAny;
        }
        return Bits(static_cast<To>(value));
    } else if constexpr (std::is_same_v<To, Half>) {
        // An integer beyond 2^53 is infinity as f16, however it is rounded before.
        return Bits(Half(static_cast<double>(from)));
    } else if constexpr (std::is_same_v<From, Half>) {
        return Bits(static_cast<To>(static_cast<double>(from)));
    } else {
        return Bits(static_cast<To>(from));
    }
}

template <typename From>
void ConvertToAll(From from, std::vector<Want>& wants) {
    wants.push_back(Converted<int8_t>(from));
    wants.push_back(Converted<uint8_t>(from));
    wants.push_back(Converted<int16_t>(from));
    wants.push_back(Converted<uint16_t>(from));
    wants.push_back(Converted<int32_t>(from));
    wants.push_back(Converted<uint32_t>(from));
    wants.push_back(Converted<int64_t>(from));
    wants.push_back(Converted<uint64_t>(from));
    wants.push_back(Converted<Half>(from));
    wants.push_back(Converted<float>(from));
    wants.push_back(Converted<double>(from));
}

// Words whose low 8, 16, 32 and 64 bits are interesting integers and floats.
std::vector<uint64_t> SourceWords(size_t count) {
    std::vector<uint64_t> words = {0,
                                   1,
                                   0x7f,
                                   0x80,
                                   0xff,
                                   0x7fff,
                                   0x8000,
                                   0xffff,
                                   0x7fffffff,
                                   0x80000000,
                                   0xffffffff,
                                   ~0ull >> 1,
                                   1ull << 63,
                                   ~0ull,
                                   0x7c00,
                                   0xfc00,
                                   0x7e00,
                                   0x7bff,
                                   0x0400,
                                   0x03ff,
                                   0x3c00,
                                   (1ull << 53) + 1,
                                   (1ull << 24) + 1,
                                   65519,
                                   65520,
                                   0x8000000080000001};
    for (double value : {0.0,
                         -0.0,
                         1.0,
                         -1.5,
                         0.1,
                         255.5,
                         -128.0,
                         127.99,
                         65504.0,
                         65519.99,
                         65520.0,
                         65535.5,
                         2147483647.5,
                         4294967295.0,
                         1e10,
                         -1e18,
                         0x1p63,
                         1e300,
                         0x1p-14,
                         0x1.004p-15,
                         0x1p-25,
                         0x1.0000001p-25,
                         0x1p-140,
                         0x1p-1040,
                         INFINITY * 1.0,
                         -INFINITY * 1.0,
                         std::nan("")}) {
        words.push_back(std::bit_cast<uint64_t>(value));
        words.push_back(std::bit_cast<uint32_t>(static_cast<float>(value)));
        words.push_back(DoubleToHalf(value));
    }
    std::mt19937_64 random(11);
    while (words.size() < count) {
        uint64_t word = random();
        if (words.size() % 4 == 1) {
            word >>= random() % 64;
        }
        if (words.size() % 4 == 2) {  // a double of a usual size
            word = std::bit_cast<uint64_t>(std::ldexp(
                static_cast<double>(static_cast<int64_t>(word)), -static_cast<int>(random() % 80)));
        }
        if (words.size() % 4 == 3) {  // a float of one
            word = std::bit_cast<uint32_t>(std::ldexp(
                static_cast<float>(static_cast<int32_t>(word)), -static_cast<int>(random() % 48)));
        }
        words.push_back(word);
    }
    return words;
}

TEST_F(KernelsTypesTest, EveryPairOfTypesConverts) {
    constexpr size_t kResults = 121;
    const std::vector<uint64_t> words = SourceWords(2000);
    std::array buffers = {MakeBuffer(words.size() * 2), MakeBuffer(words.size() * kResults * 2)};
    std::memcpy(buffers[0].words, words.data(), words.size() * 8);
    Run(MakePipeline(spirv::kTypeConversions, buffers),
        static_cast<uint32_t>(words.size() + 63) / 64);
    const auto* results = reinterpret_cast<const uint64_t*>(buffers[1].words);
    size_t wrong = 0;
    for (size_t i = 0; i < words.size(); ++i) {
        const uint64_t word = words[i];
        std::vector<Want> wants;
        ConvertToAll(static_cast<int8_t>(word), wants);
        ConvertToAll(static_cast<uint8_t>(word), wants);
        ConvertToAll(static_cast<int16_t>(word), wants);
        ConvertToAll(static_cast<uint16_t>(word), wants);
        ConvertToAll(static_cast<int32_t>(word), wants);
        ConvertToAll(static_cast<uint32_t>(word), wants);
        ConvertToAll(static_cast<int64_t>(word), wants);
        ConvertToAll(word, wants);
        ConvertToAll(Half(static_cast<uint16_t>(word)), wants);
        ConvertToAll(std::bit_cast<float>(static_cast<uint32_t>(word)), wants);
        ConvertToAll(std::bit_cast<double>(word), wants);
        ASSERT_EQ(wants.size(), kResults);
        for (size_t j = 0; j < kResults; ++j) {
            const uint64_t result = results[i * kResults + j];
            if (!wants[j].Allows(result) && ++wrong < 10) {
                ADD_FAILURE() << std::hex << word << " from type " << j / 11 << " to type "
                              << j % 11 << " gives " << result << " and not " << wants[j].bits;
            }
        }
    }
    EXPECT_EQ(wrong, 0u);
}

template <typename S, typename U>
void Integers(uint64_t x, uint64_t y, std::vector<Want>& wants) {
    const auto a = static_cast<U>(x);
    const auto b = static_cast<U>(y);
    const auto sa = static_cast<S>(a);
    const auto sb = static_cast<S>(b);
    const U by = b & (sizeof(U) * 8 - 1);
    const auto add = [&](auto value) { wants.push_back(Bits(static_cast<U>(value))); };
    add(a + b);
    add(a - b);
    add(static_cast<uint64_t>(a) * b);
    add(b != 0 ? a / b : 0);
    add(b != 0 ? a % b : 0);
    add(sb != 0 && sb != -1 ? sa / sb : 0);
    add(sa >= 0 && sb > 0 ? sa % sb : 0);
    add(a & b);
    add(a | b);
    add(a ^ b);
    add(~a);
    add(U{0} - a);
    add(static_cast<uint64_t>(a) << by);
    add(a >> by);
    add(sa >> by);
    add(std::min(a, b));
    add(std::max(a, b));
    add(std::min(sa, sb));
    add(std::max(sa, sb));
    add(sa < 0 ? U{0} - a : a);
    add((sa > 0) - (sa < 0));
    add(std::clamp(sa, S{-7}, S{100}));
    wants.push_back(Bits(static_cast<uint64_t>((a < b) | (a <= b) << 1 | (sa < sb) << 2 |
                                               (sa <= sb) << 3 | (a == b) << 4 | (a != b) << 5 |
                                               (a > b) << 6 | (sa >= sb) << 7)));
}

template <typename F>
void Floats(F a, F b, std::vector<Want>& wants) {
    const auto x = static_cast<double>(a);
    const auto y = static_cast<double>(b);
    const auto add = [&](double value) { wants.push_back(Bits(F(value))); };
    add(x + y);
    add(x - y);
    add(x * y);
    // Vulkan allows the division of f16 and f32 2.5 ULP; Fornax rounds f16 and f64 correctly.
    add(x / y);
    add(-x);
    add(std::fabs(x));
    add(x > 0 ? 1.0 : x < 0 ? -1.0 : x == 0 ? x : 0.0);
    add(std::floor(x));
    add(std::ceil(x));
    add(std::trunc(x));
    add(std::nearbyint(x));
    add(std::sqrt(x));
    if (std::isnan(x) || std::isnan(y) || (x == 0 && y == 0)) {  // either operand
        wants.insert(wants.end(), 2, kAny);
    } else {
        add(std::min(x, y));
        add(std::max(x, y));
    }
    if (std::isnan(x) || std::isnan(y)) {
        wants.push_back(kAny);
    } else {
        add(x < y ? 0.0 : 1.0);
    }
    wants.push_back(Bits(static_cast<uint64_t>((x < y) | (x <= y) << 1 | (x == y) << 2 |
                                               (x != y) << 3 | (x > y) << 4 | (x >= y) << 5 |
                                               std::isnan(x) << 6 | std::isinf(x) << 7)));
}

TEST_F(KernelsTypesTest, OperationsGiveWhatTheHostGives) {
    constexpr size_t kResults = 101;
    const std::vector<uint64_t> words = SourceWords(400);
    std::vector<uint64_t> pairs;
    std::mt19937 random(3);
    for (size_t i = 0; i < 6000; ++i) {
        // The first words are the edges: each meets each.
        pairs.push_back(i < 3600 ? words[i % 60] : words[random() % words.size()]);
        pairs.push_back(i < 3600 ? words[i / 60] : words[random() % words.size()]);
    }
    const size_t count = pairs.size() / 2;
    std::array buffers = {MakeBuffer(pairs.size() * 2), MakeBuffer(count * kResults * 2)};
    std::memcpy(buffers[0].words, pairs.data(), pairs.size() * 8);
    Run(MakePipeline(spirv::kTypeArithmetic, buffers), static_cast<uint32_t>(count + 63) / 64);
    const auto* results = reinterpret_cast<const uint64_t*>(buffers[1].words);
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) {
        const uint64_t x = pairs[2 * i];
        const uint64_t y = pairs[2 * i + 1];
        std::vector<Want> wants;
        Integers<int8_t, uint8_t>(x, y, wants);
        Integers<int16_t, uint16_t>(x, y, wants);
        Integers<int64_t, uint64_t>(x, y, wants);
        Floats(Half(static_cast<uint16_t>(x)), Half(static_cast<uint16_t>(y)), wants);
        Floats(std::bit_cast<double>(x), std::bit_cast<double>(y), wants);
        ASSERT_EQ(wants.size(), kResults);
        for (size_t j = 0; j < kResults; ++j) {
            const uint64_t result = results[i * kResults + j];
            if (!wants[j].Allows(result) && ++wrong < 10) {
                ADD_FAILURE() << "operation " << j << " of " << std::hex << x << " and " << y
                              << " gives " << result << " and not " << wants[j].bits;
            }
        }
    }
    EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace fornax::test

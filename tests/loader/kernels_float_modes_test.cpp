// Float arithmetic under the execution modes of VK_KHR_shader_float_controls, through the loader:
// what becomes of denormals and how results are rounded, for each width by itself.
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include <spirv/unified1/spirv.hpp>

#include "base/half.h"
#include "tests/loader/shaders/fused.spv.h"
#include "tests/loader/shaders/strict_floats.spv.h"
#include "tests/loader/types_fixture.h"

namespace fornax::test {
namespace {

struct Half {
    uint16_t bits = 0;
};

struct Mode {
    bool flush = false;
    bool to_zero = false;
};

struct Modes {
    Mode half;
    Mode single;
    Mode full;
};

// What the test's own arithmetic rounds to, while it lives.
class Rounding {
  public:
    explicit Rounding(bool to_zero) { std::fesetround(to_zero ? FE_TOWARDZERO : FE_TONEAREST); }
    ~Rounding() { std::fesetround(FE_TONEAREST); }
};

// Results of double arithmetic: the sum or product of narrower floats that is rounded to double
// first has the same result afterwards, to nearest and towards zero alike. Volatile, because
// compilers take for granted that nothing changes the rounding.
template <typename F>
F Narrow(double exact, Mode mode) {
    volatile double value = exact;
    if constexpr (std::is_same_v<F, Half>) {
        Half half{DoubleToHalf(value)};
        if (mode.to_zero && std::abs(HalfToDouble(half.bits)) > std::abs(value)) {
            --half.bits;
        }
        return half;
    } else {
        const Rounding rounding(mode.to_zero);
        volatile F result = static_cast<F>(value);
        return result;
    }
}

double Widen(Half value) {
    return HalfToDouble(value.bits);
}
double Widen(double value) {
    return value;
}

template <typename F>
double SmallestNormal() {
    if constexpr (std::is_same_v<F, Half>) {
        return 0x1p-14;
    } else {
        return std::numeric_limits<F>::min();
    }
}

template <typename F>
double Flush(double value, Mode mode) {
    return mode.flush && std::abs(value) < SmallestNormal<F>() ? std::copysign(0, value) : value;
}

// The bits of the result, or of any NaN.
template <typename F>
uint64_t Finish(double value, Mode mode) {
    const F result = Narrow<F>(value, mode);
    const double exact = Widen(result);
    const F kept = Narrow<F>(Flush<F>(exact, mode), {});
    if (std::isnan(exact)) {
        return UINT64_MAX;
    }
    if constexpr (std::is_same_v<F, Half>) {
        return kept.bits;
    } else if constexpr (std::is_same_v<F, float>) {
        return std::bit_cast<uint32_t>(kept);
    } else {
        return std::bit_cast<uint64_t>(kept);
    }
}

template <typename F>
void Operations(F a, F b, Mode mode, std::vector<uint64_t>& wants) {
    volatile double x = Flush<F>(Widen(a), mode);
    volatile double y = Flush<F>(Widen(b), mode);
    volatile double half = 0.5;
    volatile double zero = 0;
    std::array<double, 8> results = {};
    {
        const Rounding rounding(mode.to_zero);
        results = {x + y, x - y, x * y, x * half, x + zero, x * zero, x - x, -x};
    }
    for (double result : results) {
        wants.push_back(Finish<F>(result, mode));
    }
}

// An integer's nearest double, or the next one towards zero.
template <typename Integer>
double OfInteger(Integer integer, Mode mode) {
    volatile Integer value = integer;
    const Rounding rounding(mode.to_zero);
    volatile double result = static_cast<double>(value);
    return result;
}

// As above for floats: by way of a double there would be two roundings.
template <typename Integer>
double SingleOfInteger(Integer integer, Mode mode) {
    volatile Integer value = integer;
    const Rounding rounding(mode.to_zero);
    volatile float result = static_cast<float>(value);
    return result;
}

class KernelsFloatModesTest : public TypesTest {
  protected:
    void Check(const Modes& modes);
};

// The shader with the execution modes.
std::vector<uint32_t> WithModes(std::span<const uint32_t> shader, const Modes& modes) {
    std::vector<uint32_t> words(shader.begin(), shader.end());
    size_t at = 5;
    while ((words[at] & 0xffff) != uint32_t{spv::OpExecutionMode}) {
        at += words[at] >> 16;
    }
    const uint32_t entry_point = words[at + 1];
    std::vector<uint32_t> added;
    auto add = [&](spv::ExecutionMode mode, uint32_t width) {
        added.insert(added.end(), {4u << 16 | spv::OpExecutionMode, entry_point, mode, width});
    };
    for (uint32_t width : {16u, 32u, 64u}) {
        const Mode& mode = width == 16 ? modes.half : width == 32 ? modes.single : modes.full;
        add(mode.flush ? spv::ExecutionModeDenormFlushToZero : spv::ExecutionModeDenormPreserve,
            width);
        add(mode.to_zero ? spv::ExecutionModeRoundingModeRTZ : spv::ExecutionModeRoundingModeRTE,
            width);
        if (width != 64) {  // which the shader says
            add(spv::ExecutionModeSignedZeroInfNanPreserve, width);
        }
    }
    words.insert(words.begin() + static_cast<ptrdiff_t>(at), added.begin(), added.end());
    return words;
}

void KernelsFloatModesTest::Check(const Modes& modes) {
    constexpr size_t kResults = 37;
    std::vector<uint64_t> pairs;
    std::mt19937_64 random(23);
    // Low bits: f16 denormals, zeros, infinities; the same for f32 and f64.
    constexpr uint64_t kEdges[] = {0,
                                   0x8000,
                                   1,
                                   0x8001,
                                   0x3ff,
                                   0x400,
                                   0x7c00,
                                   0xfc00,
                                   0x7e00,
                                   0x80000000,
                                   0x80000001,
                                   0x007fffff,
                                   0x00800000,
                                   0x00800001,
                                   0x7f800000,
                                   0xff800000,
                                   0x477fefff,
                                   0x477ff000,
                                   0x38801000,
                                   0x38803000,
                                   0x33000000,
                                   0x33000001,
                                   1ull << 63,
                                   0x000fffffffffffff,
                                   0x0010000000000000,
                                   0x0010000000000001,
                                   0x8008000000000000,
                                   0x3fe0000000000000,
                                   0x36a0000000000000,
                                   0x3690000000000001,
                                   0x3e60000000000000,
                                   0x7ff0000000000000,
                                   0x47efffffefffffff,
                                   0x47effffff0000000};
    for (uint64_t x : kEdges) {
        for (uint64_t y : kEdges) {
            pairs.insert(pairs.end(), {x, y});
        }
    }
    for (int i = 0; i < 4000; ++i) {
        pairs.push_back(random() >> (random() % 64));
    }
    // Products and sums around the smallest doubles, and those that overflow.
    for (int i = 0; i < 500; ++i) {
        const uint64_t fraction = random() >> 12;
        const uint64_t other = random() >> (12 + random() % 40);
        const uint64_t exponent = random() % 2046;
        const uint64_t partner = std::min<uint64_t>(2046, (random() % 120 + 960) % 1082);
        pairs.push_back(exponent << 52 | fraction);
        pairs.push_back((exponent < partner ? partner - exponent : 2046 - exponent / 2) << 52 |
                        other);
    }
    const size_t count = pairs.size() / 2;
    std::array buffers = {MakeBuffer(pairs.size() * 2), MakeBuffer(count * kResults * 2)};
    std::memcpy(buffers[0].words, pairs.data(), pairs.size() * 8);
    Run(MakePipeline(WithModes(spirv::kStrictFloats, modes), buffers),
        static_cast<uint32_t>(count + 63) / 64);
    const auto* results = reinterpret_cast<const uint64_t*>(buffers[1].words);
    // Which type a result has: eight of each, then the conversions'.
    constexpr size_t kConverted[] = {0, 0, 1, 1, 2, 2, 0, 1, 1, 1, 2, 2, 2};
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) {
        const uint64_t bits = pairs[2 * i];
        const uint64_t bits2 = pairs[2 * i + 1];
        const Half half{static_cast<uint16_t>(bits)};
        const auto single = std::bit_cast<float>(static_cast<uint32_t>(bits));
        const auto full = std::bit_cast<double>(bits);
        std::vector<uint64_t> wants;
        Operations(half, Half{static_cast<uint16_t>(bits2)}, modes.half, wants);
        Operations(single, std::bit_cast<float>(static_cast<uint32_t>(bits2)), modes.single, wants);
        Operations(full, std::bit_cast<double>(bits2), modes.full, wants);
        const double kept_half = Flush<Half>(Widen(half), modes.half);
        const double kept_single = Flush<float>(single, modes.single);
        const double kept_full = Flush<double>(full, modes.full);
        wants.push_back(Finish<Half>(kept_single, modes.half));
        wants.push_back(Finish<Half>(kept_full, modes.half));
        wants.push_back(Finish<float>(kept_full, modes.single));
        wants.push_back(Finish<float>(kept_half, modes.single));
        wants.push_back(Finish<double>(kept_half, modes.full));
        wants.push_back(Finish<double>(kept_single, modes.full));
        const auto signed_bits = static_cast<int64_t>(bits);
        wants.push_back(Finish<Half>(OfInteger(signed_bits, {.to_zero = true}), modes.half));
        wants.push_back(Finish<float>(SingleOfInteger(signed_bits, modes.single), modes.single));
        wants.push_back(Finish<float>(SingleOfInteger(bits, modes.single), modes.single));
        wants.push_back(
            Finish<float>(SingleOfInteger(static_cast<int32_t>(bits), modes.single), modes.single));
        wants.push_back(Finish<double>(OfInteger(signed_bits, modes.full), modes.full));
        wants.push_back(Finish<double>(OfInteger(bits, modes.full), modes.full));
        wants.push_back(Finish<double>(static_cast<uint32_t>(bits), modes.full));
        ASSERT_EQ(wants.size(), kResults);
        for (size_t j = 0; j < kResults; ++j) {
            uint64_t result = results[i * kResults + j];
            const size_t type = j < 24 ? j / 8 : kConverted[j - 24];
            if ((type == 0 && (result & 0x7fff) > 0x7c00) ||
                (type == 1 && (result & 0x7fffffff) > 0x7f800000) ||
                (type == 2 && (result & ~0ull >> 1) > 0x7ffull << 52)) {
                result = UINT64_MAX;
            }
            if (result != wants[j] && ++wrong < 10) {
                ADD_FAILURE() << "result " << j << " of " << std::hex << bits << " and " << bits2
                              << " is " << result << " and not " << wants[j];
            }
        }
    }
    EXPECT_EQ(wrong, 0u);
}

constexpr Mode kKept;
constexpr Mode kFlushed = {.flush = true};
constexpr Mode kToZero = {.to_zero = true};
constexpr Mode kBoth = {.flush = true, .to_zero = true};

TEST_F(KernelsFloatModesTest, NothingIsFlushedOrAssumedAway) {
    Check({kKept, kKept, kKept});
}

TEST_F(KernelsFloatModesTest, DenormalsAreFlushedAndResultsCut) {
    Check({kBoth, kBoth, kBoth});
}

TEST_F(KernelsFloatModesTest, EachWidthHasItsOwnModes) {
    Check({kBoth, kKept, kFlushed});
    Check({kKept, kBoth, kToZero});
}

class KernelsFusedTest : public TypesTest {
  protected:
    void SetUp() override {
        extra_extensions_ = {VK_KHR_SHADER_FMA_EXTENSION_NAME};
        dot_.pNext = &fma_;
        TypesTest::SetUp();
    }
    void Check(const Modes& modes);

    VkPhysicalDeviceShaderFmaFeaturesKHR fma_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FMA_FEATURES_KHR,
        .shaderFmaFloat16 = VK_TRUE,
        .shaderFmaFloat32 = VK_TRUE,
        .shaderFmaFloat64 = VK_TRUE};
};

// a * b + c of operands whose denormals are flushed where the mode says so, and rounded once. A
// double holds the product of halves, and its sum with a third unless one is too small to matter.
template <typename F>
uint64_t Fused(F a, F b, F c, Mode mode) {
    volatile double x = Flush<F>(Widen(a), mode);
    volatile double y = Flush<F>(Widen(b), mode);
    volatile double z = Flush<F>(Widen(c), mode);
    volatile double result = 0;
    {
        const Rounding rounding(mode.to_zero);
        if constexpr (std::is_same_v<F, Half>) {
            result = x * y + z;
        } else if constexpr (std::is_same_v<F, float>) {
            result = std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z));
        } else {
            result = std::fma(x, y, z);
        }
    }
    return Finish<F>(result, mode);
}

void KernelsFusedTest::Check(const Modes& modes) {
    // Exponents and fractions that make ties, cancellation, overflow and underflow likely.
    std::mt19937_64 random(31);
    auto operand = [&] {
        constexpr uint64_t kExponents[] = {0,    1,    2,    3,    53,   54,   100,
                                           500,  970,  1022, 1023, 1024, 1075, 1076,
                                           1500, 1950, 2000, 2045, 2046, 2047};
        const uint64_t bits = random();
        uint64_t full = kExponents[bits % std::size(kExponents)] << 52;
        if (bits & 0x100) {
            full |= random() >> (12 + (bits >> 9) % 52);  // low digits
        }
        if (bits & 0x200) {
            full |= (random() << (bits >> 15) % 52) & 0x000fffff00000000;  // high digits
        }
        // The lower halves are a float's and a half's operands.
        if (bits & 0x400) {
            full = (full & ~0xffffffffull) |
                   (((bits >> 20) % 4 == 0 ? bits >> 40 : 120 + bits % 20) & 255) << 23 |
                   (random() & 0x7fffff) >> (bits >> 24) % 23;
        }
        return full | (bits & 0x800 ? uint64_t{1} << 63 : 0) | (bits & 0x1000 ? 0x80000000 : 0) |
               (bits & 0x2000 ? 0x8000 : 0);
    };
    std::vector<uint64_t> operands;
    for (int i = 0; i < 60'000; ++i) {
        operands.push_back(operand());
    }
    // Sums that nearly vanish: c is the product's negative, rounded, and one step beside it.
    for (int i = 0; i < 5'000; ++i) {
        const double a =
            std::bit_cast<double>((random() >> 12) | uint64_t{500 + random() % 1000} << 52);
        const double b =
            std::bit_cast<double>((random() >> 12) | uint64_t{523 + random() % 1000} << 52);
        const uint64_t c = std::bit_cast<uint64_t>(-(a * b)) + random() % 3 - 1;
        operands.insert(operands.end(),
                        {std::bit_cast<uint64_t>(a), std::bit_cast<uint64_t>(b), c});
    }
    const size_t count = operands.size() / 3;
    std::array buffers = {MakeBuffer(operands.size() * 2), MakeBuffer(operands.size() * 2)};
    std::memcpy(buffers[0].words, operands.data(), operands.size() * 8);
    Run(MakePipeline(WithModes(spirv::kFused, modes), buffers),
        static_cast<uint32_t>(count + 63) / 64);
    const auto* results = reinterpret_cast<const uint64_t*>(buffers[1].words);
    size_t wrong = 0;
    auto half = [](uint64_t bits) { return Half{static_cast<uint16_t>(bits)}; };
    auto single = [](uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); };
    auto full = [](uint64_t bits) { return std::bit_cast<double>(bits); };
    for (size_t i = 0; i < count * 3; i += 3) {
        const uint64_t* in = &operands[i];
        const uint64_t wants[] = {Fused(half(in[0]), half(in[1]), half(in[2]), modes.half),
                                  Fused(single(in[0]), single(in[1]), single(in[2]), modes.single),
                                  Fused(full(in[0]), full(in[1]), full(in[2]), modes.full)};
        constexpr uint64_t kInfinities[] = {0x7c00, 0x7f800000, 0x7ff0000000000000};
        for (size_t type = 0; type < 3; ++type) {
            uint64_t result = results[i + type];
            constexpr uint64_t kSigns[] = {0x8000, 0x80000000, uint64_t{1} << 63};
            if ((result & ~kSigns[type]) > kInfinities[type]) {
                result = UINT64_MAX;
            }
            if (result != wants[type] && ++wrong < 10) {
                ADD_FAILURE() << std::hex << in[0] << " * " << in[1] << " + " << in[2] << " of "
                              << std::dec << (16 << type) << " bits is " << std::hex << result
                              << " and not " << wants[type];
            }
        }
    }
    EXPECT_EQ(wrong, 0u);
}

TEST_F(KernelsFusedTest, ProductsAndSumsAreRoundedOnce) {
    Check({kKept, kKept, kKept});
}

TEST_F(KernelsFusedTest, ModesHoldForThem) {
    Check({kBoth, kBoth, kBoth});
    Check({kToZero, kToZero, kToZero});
    Check({kFlushed, kFlushed, kFlushed});
}

}  // namespace
}  // namespace fornax::test

// Every form of the integer dot product, and those of bfloat16 added to floats, through the loader,
// against sums on the host.
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>

#include "tests/loader/shaders/dots.spv.h"
#include "tests/loader/shaders/mixed_dot.spv.h"
#include "tests/loader/types_fixture.h"

namespace fornax::test {
namespace {

using KernelsDotTest = TypesTest;
using Want = std::optional<uint64_t>;  // nothing: SPIR-V leaves it open

template <typename T>
uint64_t Bits(T value) {
    return static_cast<std::make_unsigned_t<T>>(value);
}

// The low bits of the sum of products, as R.
template <typename A, typename B, typename R>
R Dot(const uint64_t* x, const uint64_t* y, size_t count) {
    using U = std::make_unsigned_t<R>;
    U sum = 0;
    for (size_t i = 0; i < count; ++i) {
        sum += static_cast<U>(static_cast<R>(static_cast<A>(x[i]))) *
               static_cast<U>(static_cast<R>(static_cast<B>(y[i])));
    }
    return static_cast<R>(sum);
}

// "If any of the multiplications or additions, with the exception of the final accumulation,
// overflow or underflow, the result of the instruction is undefined."
template <typename A, typename B, typename R>
Want DotSaturating(const uint64_t* x, const uint64_t* y, size_t count, R accumulator) {
    R sum = 0;
    for (size_t i = 0; i < count; ++i) {
        R product = 0;
        if (__builtin_mul_overflow(static_cast<A>(x[i]), static_cast<B>(y[i]), &product) ||
            __builtin_add_overflow(sum, product, &sum)) {
            return std::nullopt;
        }
    }
    R result = 0;
    if (__builtin_add_overflow(sum, accumulator, &result)) {
        result = accumulator > 0 ? std::numeric_limits<R>::max() : std::numeric_limits<R>::min();
    }
    return Bits(result);
}

// The forms in the order of dots.comp.
template <typename U, typename UR>
void AddForms(const uint64_t* x,
              const uint64_t* y,
              size_t count,
              UR accumulator,
              std::vector<Want>& wants) {
    using S = std::make_signed_t<U>;
    using SR = std::make_signed_t<UR>;
    const auto sacc = static_cast<SR>(accumulator);
    wants.push_back(Bits(Dot<U, U, UR>(x, y, count)));
    wants.push_back(Bits(Dot<S, S, SR>(x, y, count)));
    wants.push_back(Bits(Dot<S, U, SR>(x, y, count)));
    wants.push_back(Bits(Dot<U, S, SR>(x, y, count)));
    wants.push_back(DotSaturating<U, U, UR>(x, y, count, accumulator));
    wants.push_back(DotSaturating<S, S, SR>(x, y, count, sacc));
    wants.push_back(DotSaturating<S, U, SR>(x, y, count, sacc));
    wants.push_back(DotSaturating<U, S, SR>(x, y, count, sacc));
}

std::vector<Want> Record(const uint64_t* x, const uint64_t* y) {
    std::vector<Want> wants;
    const auto acc = static_cast<uint32_t>(x[3] >> 32);
    for (size_t count : {2, 3, 4}) {
        AddForms<uint8_t, uint32_t>(x, y, count, acc, wants);
    }
    for (size_t count : {2, 3, 4}) {
        AddForms<uint16_t, uint32_t>(x, y, count, acc, wants);
    }
    for (size_t count : {2, 3, 4}) {
        AddForms<uint32_t, uint32_t>(x, y, count, acc, wants);
    }
    for (size_t count : {2, 3, 4}) {
        AddForms<uint64_t, uint64_t>(x, y, count, x[3], wants);
    }
    uint64_t a[4];
    uint64_t b[4];
    for (int i = 0; i < 4; ++i) {
        a[i] = x[0] >> (8 * i) & 0xff;
        b[i] = y[0] >> (8 * i) & 0xff;
    }
    AddForms<uint8_t, uint32_t>(a, b, 4, acc, wants);
    Want& onto_sum = wants[wants.size() - 5];
    onto_sum = static_cast<uint32_t>(*onto_sum + acc);
    return wants;
}

TEST_F(KernelsDotTest, EveryFormGivesTheSum) {
    constexpr size_t kResults = 104;
    constexpr size_t kRecords = 3000;
    std::mt19937_64 random(17);
    std::vector<uint64_t> vectors;
    constexpr uint64_t kEdges[] = {
        0,          1,          0x7f,       0x80,  0xff,       0x7fff,     0x8000,     0xffff,
        0x7fffffff, 0x80000000, 0xffffffff, ~0ull, ~0ull >> 1, 1ull << 63, 0x80808080, 0x7f7f7f7f};
    for (size_t i = 0; i < kRecords * 8; ++i) {
        const size_t record = i / 8;
        if (record % 4 == 0) {
            vectors.push_back(kEdges[random() % std::size(kEdges)]);
        } else if (record % 4 == 1) {  // small, of either sign
            vectors.push_back(static_cast<uint64_t>(static_cast<int64_t>(random() % 2001) - 1000));
        } else {
            vectors.push_back(record % 4 == 2 ? random() : random() >> (random() % 64));
        }
        if (i % 8 == 3 && random() % 2) {  // the accumulator, near the ends
            vectors.back() = (random() % 2 ? 0x7fffff00ull : 0x80000100ull) << 32;
        }
    }
    std::array buffers = {MakeBuffer(vectors.size() * 2), MakeBuffer(kRecords * kResults * 2)};
    std::memcpy(buffers[0].words, vectors.data(), vectors.size() * 8);
    Run(MakePipeline(spirv::kDots, buffers), (kRecords + 63) / 64);
    const auto* results = reinterpret_cast<const uint64_t*>(buffers[1].words);
    std::array<size_t, kResults> compared = {};
    size_t wrong = 0;
    for (size_t i = 0; i < kRecords; ++i) {
        const std::vector<Want> wants = Record(&vectors[i * 8], &vectors[i * 8 + 4]);
        ASSERT_EQ(wants.size(), kResults);
        for (size_t j = 0; j < kResults; ++j) {
            if (!wants[j]) {
                continue;
            }
            ++compared[j];
            const uint64_t result = results[i * kResults + j];
            if (result != *wants[j] && ++wrong < 10) {
                ADD_FAILURE() << "result " << j << " of record " << i << " is " << std::hex
                              << result << " and not " << *wants[j];
            }
        }
    }
    EXPECT_EQ(wrong, 0u);
    for (size_t j = 0; j < kResults; ++j) {
        EXPECT_GT(compared[j], 50u) << "Too few inputs test result " << j << ".";
    }
}

class KernelsMixedDotTest : public VulkanTest {
  protected:
    void SetUp() override {
        VulkanTest::SetUp();
        uint32_t count = 0;
        vkEnumerateDeviceExtensionProperties(physical_, nullptr, &count, nullptr);
        std::vector<VkExtensionProperties> extensions(count);
        vkEnumerateDeviceExtensionProperties(physical_, nullptr, &count, extensions.data());
        const char* const wanted = VK_VALVE_SHADER_MIXED_FLOAT_DOT_PRODUCT_EXTENSION_NAME;
        if (std::ranges::none_of(extensions, [&](const VkExtensionProperties& extension) {
                return std::strcmp(extension.extensionName, wanted) == 0;
            })) {
            GTEST_SKIP() << "The processor has no such instruction.";
        }
        VulkanTest::TearDown();
        more_extensions_ = {VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME,
                            VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME, wanted};
        more_features_ = &dot_;
        VulkanTest::SetUp();
    }

    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR,
        .shaderBFloat16Type = VK_TRUE};
    VkPhysicalDeviceShaderMixedFloatDotProductFeaturesVALVE dot_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_MIXED_FLOAT_DOT_PRODUCT_FEATURES_VALVE,
        .pNext = &bfloat16_,
        .shaderMixedFloatDotProductBFloat16Acc = VK_TRUE};
};

TEST_F(KernelsMixedDotTest, PairsAreAddedToFloatsAndToBFloats) {
    constexpr uint32_t kCount = 4096;
    std::array buffers = {MakeBuffer(3 * kCount), MakeBuffer(2 * kCount)};
    std::mt19937 random(5);
    // Exponents of which neither products nor sums leave the normal numbers.
    const auto exponent = [&] { return static_cast<uint32_t>(100 + random() % 50); };
    for (uint32_t i = 0; i < 3 * kCount; ++i) {
        buffers[0].words[i] =
            (static_cast<uint32_t>(random()) & 0x807f807fU) | exponent() << 7 | exponent() << 23;
    }
    Run(MakePipeline(spirv::kMixedDot, buffers), kCount / 64);
    const auto number = [](uint32_t bits) { return double{std::bit_cast<float>(bits)}; };
    for (uint32_t i = 0; i < kCount; ++i) {
        const uint32_t* words = buffers[0].words + size_t{3} * i;
        const double a[] = {number(words[0] << 16), number(words[0] & 0xffff0000U)};
        const double b[] = {number(words[1] << 16), number(words[1] & 0xffff0000U)};
        const double c = number(words[2]);
        const double wide = a[0] * b[0] + a[1] * b[1] + c;
        const double narrow = a[1] * b[0] + a[0] * b[1] + c;
        const double scale = std::abs(a[0] * b[0]) + std::abs(a[1] * b[1]) + std::abs(c);
        const double other = std::abs(a[1] * b[0]) + std::abs(a[0] * b[1]) + std::abs(c);
        ASSERT_NEAR(number(buffers[1].words[2 * i]), wide, scale * 0x1p-22) << i;
        ASSERT_NEAR(number(buffers[1].words[2 * i + 1]), narrow, other * 0x1p-7) << i;
    }
}

}  // namespace
}  // namespace fornax::test

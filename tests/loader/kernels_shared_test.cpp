// Workgroup memory with explicit layouts and with initial zeros, and float arithmetic under the
// execution modes of VK_KHR_shader_float_controls, through the loader.
#include <algorithm>
#include <cmath>
#include <random>

#include "compiler/kernel/ir/half.h"
#include "tests/loader/shaders/shared_blocks.spv.h"
#include "tests/loader/shaders/strict_floats.spv.h"
#include "tests/loader/shaders/zero_shared.spv.h"
#include "tests/loader/types_fixture.h"

namespace fornax::test {
namespace {

using kernel::ir::DoubleToHalf;
using kernel::ir::HalfToDouble;
using KernelsSharedTest = TypesTest;
using KernelsStrictFloatsTest = TypesTest;

TEST_F(KernelsSharedTest, BlocksAreViewsOfOneMemory) {
    std::array buffers = {MakeBuffer(512)};
    Run(MakePipeline(spirv::kSharedBlocks, buffers), 3);

    std::array<uint8_t, 1024> memory = {};
    const auto word = [&](uint32_t i) {
        uint32_t value = 0;
        std::memcpy(&value, &memory[i * 4], 4);
        return value;
    };
    const auto half_word = [&](uint32_t i) {  // of shorts[], which begin at byte 4
        uint16_t value = 0;
        std::memcpy(&value, &memory[4 + i * 2], 2);
        return value;
    };
    const uint32_t* results = buffers[0].words;
    for (uint32_t i = 0; i < 64; ++i) {
        for (uint32_t k = 0; k < 16; ++k)
            memory[i * 16 + k] = static_cast<uint8_t>(i * 3 + k * 17);
    }
    for (uint32_t i = 0; i < 64; ++i) {
        for (uint32_t k = 0; k < 4; ++k)
            ASSERT_EQ(results[k * 64 + i], word(i * 4 + k)) << i;
        ASSERT_EQ(results[256 + i], static_cast<uint32_t>(static_cast<int16_t>(half_word(i * 7))))
            << i;
    }
    for (uint32_t i = 0; i < 64; ++i) {
        uint8_t* item = &memory[i * 12];
        const double x = i;
        const uint16_t halves[] = {DoubleToHalf(x), DoubleToHalf(x + 0.5), DoubleToHalf(-x)};
        const float value = static_cast<float>(i) * 4;
        item[0] = static_cast<uint8_t>(i);
        std::memcpy(item + 2, halves, 6);
        std::memcpy(item + 8, &value, 4);
    }
    for (uint32_t i = 0; i < 64; ++i) {
        const uint32_t other = (i * 5 + 3) & 63;
        ASSERT_EQ(results[320 + i], word((other * 12 + 8) / 4)) << i;
        const uint32_t tag = memory[other * 12];
        const uint32_t half = half_word(other * 6 - (other > 0 ? 1 : 0));
        ASSERT_EQ(results[384 + i], tag | half << 16) << i;
    }
    for (uint32_t i = 0; i < 64; ++i)
        memory[i] = static_cast<uint8_t>(255 - i);
    for (uint32_t i = 0; i < 64; ++i)
        ASSERT_EQ(results[448 + i], word(i & 15)) << i;
}

TEST_F(KernelsSharedTest, MemoryBeginsAsZeroInEachWorkgroup) {
    constexpr uint32_t kGroups = 200;
    std::array buffers = {MakeBuffer(kGroups * 64)};
    Run(MakePipeline(spirv::kZeroShared, buffers), kGroups);
    for (uint32_t i = 0; i < kGroups * 64; ++i)
        ASSERT_EQ(buffers[0].words[i], 64u) << i;
}

struct Half {
    uint16_t bits = 0;
    explicit Half(double value) : bits(DoubleToHalf(value)) {}
    operator double() const { return HalfToDouble(bits); }
};

// The bits of the result, or of any NaN.
template <typename F>
uint64_t Canonical(F value) {
    if (std::isnan(static_cast<double>(value)))
        return UINT64_MAX;
    if constexpr (std::is_same_v<F, Half>)
        return value.bits;
    else if constexpr (std::is_same_v<F, float>)
        return std::bit_cast<uint32_t>(value);
    else
        return std::bit_cast<uint64_t>(value);
}

template <typename F>
void Operations(F a, F b, std::vector<uint64_t>& wants) {
    const auto x = static_cast<double>(a);
    const auto y = static_cast<double>(b);
    for (double result : {x + y, x - y, x * y, x * 0.5, x + 0.0, x * 0.0, x - x, -x})
        wants.push_back(Canonical(F(result)));
}

TEST_F(KernelsStrictFloatsTest, NothingIsFlushedOrAssumedAway) {
    constexpr size_t kResults = 30;
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
        for (uint64_t y : kEdges)
            pairs.insert(pairs.end(), {x, y});
    }
    for (int i = 0; i < 4000; ++i)
        pairs.push_back(random() >> (random() % 64));
    const size_t count = pairs.size() / 2;
    std::array buffers = {MakeBuffer(pairs.size() * 2), MakeBuffer(count * kResults * 2)};
    std::memcpy(buffers[0].words, pairs.data(), pairs.size() * 8);
    Run(MakePipeline(spirv::kStrictFloats, buffers), static_cast<uint32_t>(count + 63) / 64);
    const auto* results = reinterpret_cast<const uint64_t*>(buffers[1].words);
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) {
        Half half(0);
        Half other(0);
        half.bits = static_cast<uint16_t>(pairs[2 * i]);
        other.bits = static_cast<uint16_t>(pairs[2 * i + 1]);
        const auto single = std::bit_cast<float>(static_cast<uint32_t>(pairs[2 * i]));
        const auto single2 = std::bit_cast<float>(static_cast<uint32_t>(pairs[2 * i + 1]));
        const auto full = std::bit_cast<double>(pairs[2 * i]);
        std::vector<uint64_t> wants;
        Operations(half, other, wants);
        Operations(single, single2, wants);
        Operations(full, std::bit_cast<double>(pairs[2 * i + 1]), wants);
        wants.push_back(Canonical(Half(single)));
        wants.push_back(Canonical(Half(full)));
        wants.push_back(Canonical(static_cast<float>(full)));
        wants.push_back(Canonical(static_cast<float>(static_cast<double>(half))));
        wants.push_back(Canonical(static_cast<double>(half)));
        wants.push_back(Canonical(static_cast<double>(single)));
        ASSERT_EQ(wants.size(), kResults);
        for (size_t j = 0; j < kResults; ++j) {
            uint64_t result = results[i * kResults + j];
            // Which type a result has: eight of each, then the conversions'.
            const size_t type = j < 24 ? j / 8 : j < 26 ? 0 : j < 28 ? 1 : 2;
            if ((type == 0 && (result & 0x7fff) > 0x7c00) ||
                (type == 1 && (result & 0x7fffffff) > 0x7f800000) ||
                (type == 2 && (result & ~0ull >> 1) > 0x7ffull << 52))
                result = UINT64_MAX;
            if (result != wants[j] && ++wrong < 10) {
                ADD_FAILURE() << "result " << j << " of " << std::hex << pairs[2 * i] << " and "
                              << pairs[2 * i + 1] << " is " << result << " and not " << wants[j];
            }
        }
    }
    EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace fornax::test

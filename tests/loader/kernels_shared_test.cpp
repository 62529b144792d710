// Workgroup memory with explicit layouts and with initial zeros, through the loader.
#include <algorithm>

#include "base/half.h"
#include "tests/loader/shaders/shared_blocks.spv.h"
#include "tests/loader/shaders/zero_shared.spv.h"
#include "tests/loader/types_fixture.h"

namespace fornax::test {
namespace {

using KernelsSharedTest = TypesTest;

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
        for (uint32_t k = 0; k < 16; ++k) {
            memory[i * 16 + k] = static_cast<uint8_t>(i * 3 + k * 17);
        }
    }
    for (uint32_t i = 0; i < 64; ++i) {
        for (uint32_t k = 0; k < 4; ++k) {
            ASSERT_EQ(results[k * 64 + i], word(i * 4 + k)) << i;
        }
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
    for (uint32_t i = 0; i < 64; ++i) {
        memory[i] = static_cast<uint8_t>(255 - i);
    }
    for (uint32_t i = 0; i < 64; ++i) {
        ASSERT_EQ(results[448 + i], word(i & 15)) << i;
    }
}

TEST_F(KernelsSharedTest, MemoryBeginsAsZeroInEachWorkgroup) {
    constexpr uint32_t kGroups = 200;
    std::array buffers = {MakeBuffer(kGroups * 64)};
    Run(MakePipeline(spirv::kZeroShared, buffers), kGroups);
    for (uint32_t i = 0; i < kGroups * 64; ++i) {
        ASSERT_EQ(buffers[0].words[i], 64u) << i;
    }
}

}  // namespace
}  // namespace fornax::test

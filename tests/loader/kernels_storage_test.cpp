// 8- and 16-bit members of storage buffers, uniform buffers and push constants through the loader.
#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "tests/loader/shaders/small_storage.spv.h"
#include "tests/loader/types_fixture.h"

namespace fornax::test {
namespace {

class KernelsStorageTest : public TypesTest {
  protected:
    void Check(uint32_t count);
};

class KernelsRobustStorageTest : public KernelsStorageTest {
  protected:
    void SetUp() override {
        robust_ = true;
        KernelsStorageTest::SetUp();
    }
};

template <typename T>
T* As(const TestBuffer& buffer) {
    return reinterpret_cast<T*>(buffer.words);
}

// The block of push constants of small_storage.comp, and its uniform block, byte by byte.
struct [[gnu::packed]] Push {
    uint8_t first = 200;
    uint8_t padding = 0;
    int16_t shorts[3] = {-1, 2, -30000};
    uint16_t half = DoubleToHalf(0.25);
    int8_t quad[4] = {-128, 127, -1, 5};
    uint8_t tail[3] = {250, 251, 252};
};
struct [[gnu::packed]] Uniform {
    int8_t bytes[7] = {-1, 2, -3, 4, -5, 6, -7};
    uint8_t last = 255;
    uint16_t half[3] = {DoubleToHalf(1.5), DoubleToHalf(-2), DoubleToHalf(1024)};
    int16_t shorts[6] = {1, -2, 300, -400, 32767, -32768};
    uint8_t triple[3] = {9, 8, 255};
};

void KernelsStorageTest::Check(uint32_t count) {
    constexpr uint32_t kAll = 300;
    TestBuffer blocks = MakeBuffer((kAll / 2 * 18 + 3) / 4);
    for (uint32_t i = 0; i < kAll / 2; ++i) {
        uint8_t* block = As<uint8_t>(blocks) + i * 18;
        const uint16_t scale = DoubleToHalf(std::ldexp(1.0 + i % 7, static_cast<int>(i % 5) - 3));
        std::memcpy(block, &scale, 2);
        for (uint32_t k = 0; k < 16; ++k) {
            block[2 + k] = static_cast<uint8_t>(i * 31 + k * 17);
        }
    }
    TestBuffer triples = MakeBuffer((kAll * 6 + 3) / 4);
    for (uint32_t i = 0; i < kAll * 3; ++i) {
        As<uint16_t>(triples)[i] = DoubleToHalf(i % 2048);
    }
    TestBuffer bytes = MakeBuffer((kAll + 3) / 4);
    for (uint32_t i = 0; i < kAll; ++i) {
        As<uint8_t>(bytes)[i] = static_cast<uint8_t>(i * 7 + i / 5);
    }
    TestBuffer uniforms = MakeBuffer(16, VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT);
    const Uniform u;
    std::memcpy(uniforms.words, &u, sizeof(u));
    // Exactly as large as needed, so that what lies behind is another's.
    TestBuffer floats = MakeBuffer(count * 16 + 31);
    TestBuffer out_triples = MakeBuffer((count * 6 + 3) / 4);
    out_triples.size = count * 6;
    TestBuffer out_bytes = MakeBuffer(kAll / 4);
    TestBuffer out_shorts = MakeBuffer(kAll * 6 / 4);
    if (robust_) {
        // The last elements lie outside of the range, and what is read there is 0.
        bytes.size = 291;
        out_bytes.size = 289;
        triples.size = 6 * 290 + 2;
    }
    const std::vector<TestBinding> bindings = {
        {.buffers = {blocks}},    {.buffers = {triples}},
        {.buffers = {bytes}},     {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, {uniforms}},
        {.buffers = {floats}},    {.buffers = {out_triples}},
        {.buffers = {out_bytes}}, {.buffers = {out_shorts}}};
    const VkSpecializationMapEntry entry{0, 0, 4};
    const VkSpecializationInfo specialization{1, &entry, 4, &count};
    const TestPipeline pipeline =
        MakePipeline(spirv::kSmallStorage, std::span<const TestBinding>(bindings), &specialization);
    VkCommandBuffer commands = Begin();
    Bind(commands, pipeline);
    const Push push;
    std::array<uint8_t, 128> push_bytes = {};
    std::memcpy(push_bytes.data(), &push, sizeof(push));
    vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 128,
                       push_bytes.data());
    vkCmdDispatch(commands, (count + 63) / 64, 1, 1);
    Run(commands);

    std::vector<uint8_t> want_bytes(kAll, 0);
    std::vector<int16_t> want_shorts(size_t{3} * kAll, 0);
    const auto byte_at = [&](uint32_t i) -> uint8_t {
        return i < bytes.size ? As<uint8_t>(bytes)[i] : 0;
    };
    for (uint32_t i = 0; i < count; ++i) {
        SCOPED_TRACE(i);
        const uint8_t* block = As<uint8_t>(blocks) + i / 2 * 18;
        uint16_t scale = 0;
        std::memcpy(&scale, block, 2);
        for (uint32_t k = 0; k < 16; ++k) {
            const int nibble = i % 2 ? block[2 + k] >> 4 : block[2 + k] & 15;
            ASSERT_EQ(floats.floats()[i * 16 + k], HalfToDouble(scale) * (nibble - 8)) << k;
        }
        for (uint32_t k = 0; k < 3; ++k) {
            const uint32_t at = (count - 1 - i) * 3 + (k + 2) % 3;
            const bool inside = at * 2 + 2 <= triples.size;
            const double value = inside ? HalfToDouble(As<uint16_t>(triples)[at]) : 0;
            ASSERT_EQ(As<uint16_t>(out_triples)[i * 3 + k], DoubleToHalf(value + 0.25)) << k;
        }
        const uint32_t to = (i * 37 + 11) % 300;
        if (to < out_bytes.size) {
            want_bytes[to] = static_cast<uint8_t>(byte_at(byte_at(i) * 7u % count) + 1);
        }
        want_shorts[to * 3 + 1] = static_cast<int16_t>(static_cast<int8_t>(byte_at(i)) * 3);
    }
    for (uint32_t i = 0; i < kAll; ++i) {
        ASSERT_EQ(As<uint8_t>(out_bytes)[i], want_bytes[i]) << i;
        for (uint32_t k = 0; k < 3; ++k) {
            ASSERT_EQ(As<int16_t>(out_shorts)[i * 3 + k], want_shorts[i * 3 + k]) << i;
        }
    }
    std::vector<float> rest;
    rest.insert(rest.end(), std::begin(u.bytes), std::end(u.bytes));
    // Members of packed structures have no address.
    for (uint32_t i = 0; i < 6; ++i) {
        rest.push_back(u.shorts[i]);
    }
    for (uint16_t half : {u.half[0], u.half[1], u.half[2]}) {
        rest.push_back(static_cast<float>(HalfToDouble(half)));
    }
    rest.insert(rest.end(), std::begin(u.triple), std::end(u.triple));
    for (uint32_t i = 0; i < 3; ++i) {
        rest.push_back(push.shorts[i]);
    }
    rest.insert(rest.end(), std::begin(push.tail), std::end(push.tail));
    rest.insert(rest.end(), std::begin(push.quad), std::end(push.quad));
    rest.push_back(u.last);
    rest.push_back(push.first);
    for (size_t i = 0; i < rest.size(); ++i) {
        EXPECT_EQ(floats.floats()[count * 16 + i], rest[i]) << i;
    }
}

TEST_F(KernelsStorageTest, ElementsAreReadAndWrittenWhereTheyLie) {
    Check(300);
}

TEST_F(KernelsStorageTest, ThePartialVectorAtTheEndKeepsInside) {
    Check(239);
}

TEST_F(KernelsRobustStorageTest, ElementsOutsideReadZeroAndAreNotWritten) {
    Check(300);
}

}  // namespace
}  // namespace fornax::test

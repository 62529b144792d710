// Pointers through the loader: buffer device addresses and pointers that are chosen at run time.
#include <algorithm>
#include <array>
#include <numeric>

#include "tests/loader/shaders/addresses.spv.h"
#include "tests/loader/shaders/untyped_pointers.spv.h"
#include "tests/loader/shaders/variable_pointers.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

class AddressTest : public VulkanTest {
  protected:
    void SetUp() override {
        core_features_.shaderInt64 = VK_TRUE;
        more_extensions_ = {VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME};
        more_features_ = &addresses_;
        VulkanTest::SetUp();
    }

    // A buffer whose memory may be addressed; the address is that of its first word.
    struct Addressed {
        TestBuffer buffer;
        VkDeviceAddress address = 0;
    };
    Addressed MakeAddressed(size_t words) {
        Addressed made{MakeBuffer(words, VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT)};
        const VkBufferDeviceAddressInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                             .buffer = made.buffer.handle};
        made.address = vkGetBufferDeviceAddressKHR(device_, &info) + made.buffer.offset;
        return made;
    }
    void RunWith(const TestPipeline& pipeline, std::span<const std::byte> push, uint32_t groups) {
        VkCommandBuffer commands = Begin();
        Bind(commands, pipeline);
        vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           static_cast<uint32_t>(push.size()), push.data());
        vkCmdDispatch(commands, groups, 1, 1);
        Barrier(commands);
        Run(commands);
    }

    VkPhysicalDeviceBufferDeviceAddressFeatures addresses_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
        .bufferDeviceAddress = VK_TRUE};
};

TEST_F(AddressTest, MemoryIsReachedByAddress) {
    struct Push {
        VkDeviceAddress source, target, list;
        VkDeviceAddress pair, number;
        uint32_t count;
    };
    struct Node {
        uint32_t value[4];
        VkDeviceAddress next;
        uint32_t hits, pad;
    };
    const Addressed source = MakeAddressed(256);
    const Addressed second = MakeAddressed(256);
    const Addressed target = MakeAddressed(10 * 256);
    const Addressed list = MakeAddressed(5 * sizeof(Node) / 4);
    std::iota(source.buffer.words, source.buffer.words + 256, 1000u);
    std::iota(second.buffer.words, second.buffer.words + 256, 5000u);
    // The chain goes 0 3 1 4 2 and back to 0.
    constexpr uint32_t kChain[] = {0, 3, 1, 4, 2, 0};
    auto* nodes = reinterpret_cast<Node*>(list.buffer.words);
    for (uint32_t k = 0; k < 5; ++k) {
        nodes[kChain[k]] = {
            {k, k + 10, k + 20, k + 30}, list.address + kChain[k + 1] * sizeof(Node), 0, 0};
    }
    constexpr uint32_t kCount = 213;  // ends inside a vector
    const Push push{source.address, target.address, list.address,
                    second.address, source.address, kCount};
    const TestPipeline pipeline = MakePipeline(spirv::kAddresses, std::span<const TestBinding>());
    RunWith(pipeline, std::as_bytes(std::span(&push, 1)), 4);

    std::array<uint32_t, 5> hits = {1};
    for (uint32_t i = 0; i < 256; ++i) {
        SCOPED_TRACE(i);
        const uint32_t node = kChain[i % 5];
        const auto position = [&](uint32_t index) {
            return static_cast<uint32_t>(std::find(kChain, kChain + 5, index) - kChain);
        };
        const std::array expected = {1000 + i,
                                     1255 - i,
                                     1000 + (i * 37 & 255),
                                     2 * (i % 5) + 30,
                                     5000 + i,
                                     1000 + i,
                                     position(i & 3) + 10 * (i & 3),
                                     (i & 1 ? 5000u : 1000u) + i,
                                     1000 + 100 - 1 - (i & 7),
                                     node * static_cast<uint32_t>(sizeof(Node))};
        for (uint32_t k = 0; k < 10; ++k) {
            ASSERT_EQ(target.buffer.words[k * 256 + i], i < kCount ? expected[k] : 0)
                << "result " << k;
        }
        if (i < kCount) {
            hits[node] += i;
        }
    }
    // The maximum with 1 comes before the sums or after some of them.
    for (uint32_t k = 1; k < 5; ++k) {
        EXPECT_EQ(nodes[k].hits, hits[k]);
    }
    EXPECT_TRUE(nodes[0].hits == hits[0] || nodes[0].hits == hits[0] - 1) << nodes[0].hits;
}

class VariablePointersTest : public VulkanTest {
  protected:
    void SetUp() override {
        more_extensions_ = {VK_KHR_VARIABLE_POINTERS_EXTENSION_NAME};
        more_features_ = &pointers_;
        VulkanTest::SetUp();
    }
    VkPhysicalDeviceVariablePointersFeatures pointers_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VARIABLE_POINTERS_FEATURES,
        .variablePointersStorageBuffer = VK_TRUE,
        .variablePointers = VK_TRUE};
};

class RobustVariablePointersTest : public VariablePointersTest {
  protected:
    void SetUp() override {
        robust_ = true;
        VariablePointersTest::SetUp();
    }
};

// `a_words`: of the first buffer; what is read behind them is 0.
void CheckChosenPointers(std::span<const uint32_t> result, uint32_t a_words) {
    const auto a = [&](uint32_t k) { return k < a_words ? 1000 + k : 0; };
    const auto b = [](uint32_t k) { return 2000 + k; };
    for (uint32_t i = 0; i < 64; ++i) {
        const bool odd = i & 1;
        const uint32_t* out = &result[i * 10];
        const uint32_t first = odd ? a(i + 2) : b(i + 2);
        const std::array expected = {odd ? first : first + 1,
                                     a(i % 7),
                                     odd ? a(i + 1) : b(i + 1),
                                     odd ? a(i) : b(i),
                                     odd ? 2 * (i ^ 5) : (i ^ 5) + 100,
                                     odd ? 100u : 0u,
                                     odd ? 0u : 100u,
                                     odd ? 1u : 0u,
                                     0u,
                                     odd ? 0u : 7u};
        for (uint32_t k = 0; k < 10; ++k) {
            ASSERT_EQ(out[k], expected[k]) << "result " << k << " of invocation " << i;
        }
    }
}

TEST_F(VariablePointersTest, PointersAreChosenAtRunTime) {
    std::array buffers = {MakeBuffer(66), MakeBuffer(66), MakeBuffer(640)};
    std::iota(buffers[0].words, buffers[0].words + 66, 1000u);
    std::iota(buffers[1].words, buffers[1].words + 66, 2000u);
    Run(MakePipeline(spirv::kVariablePointers, buffers), 1);
    CheckChosenPointers(buffers[2].span(), 66);
}

TEST_F(RobustVariablePointersTest, TheBoundsAreThoseOfTheChosenBuffer) {
    std::array buffers = {MakeBuffer(31), MakeBuffer(66), MakeBuffer(640)};
    std::iota(buffers[0].words, buffers[0].words + 31, 1000u);
    std::iota(buffers[1].words, buffers[1].words + 66, 2000u);
    Run(MakePipeline(spirv::kVariablePointers, buffers), 1);
    CheckChosenPointers(buffers[2].span(), 31);
}

class UntypedPointersTest : public VulkanTest {
  protected:
    void SetUp() override {
        api_version_ = VK_API_VERSION_1_2;
        more_extensions_ = {VK_KHR_SHADER_UNTYPED_POINTERS_EXTENSION_NAME};
        more_features_ = &pointers_;
        VulkanTest::SetUp();
    }
    VkPhysicalDeviceShaderUntypedPointersFeaturesKHR pointers_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_UNTYPED_POINTERS_FEATURES_KHR,
        .shaderUntypedPointers = VK_TRUE};
};

TEST_F(UntypedPointersTest, MemoryTakesTheTypeOfTheAccess) {
    std::array buffers = {MakeBuffer(65), MakeBuffer(512)};
    for (uint32_t k = 0; k < 65; ++k) {
        buffers[0].floats()[k] = static_cast<float>(k) + 0.5f;
    }
    const TestPipeline pipeline = MakePipeline(spirv::kUntypedPointers, buffers);
    VkCommandBuffer commands = Begin();
    Bind(commands, pipeline);
    const uint32_t push[] = {40, 41, 42, 43};
    vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(push),
                       push);
    vkCmdDispatch(commands, 1, 1, 1);
    Barrier(commands);
    Run(commands);
    const uint32_t* in = buffers[0].words;
    for (uint32_t i = 0; i < 64; ++i) {
        SCOPED_TRACE(i);
        const uint32_t* out = buffers[1].words + i * 8;
        EXPECT_EQ(buffers[1].floats()[i * 8], 2 * buffers[0].floats()[i]);
        const uint32_t second = i / 2 * 2 + 1;
        const std::array expected = {in[second],     65u, push[i & 3], in[second],
                                     in[second + 1], i,   i + 1};
        for (uint32_t k = 0; k < 7; ++k) {
            EXPECT_EQ(out[k + 1], expected[k]) << "result " << k + 1;
        }
    }
}

}  // namespace
}  // namespace fornax::test

// 64-bit indexing through the loader: a buffer of 6 GiB, of which few pages are touched.
#include <algorithm>
#include <array>

#include "tests/loader/shaders/wide_indices_mode.spv.h"
#include "tests/loader/shaders/wide_indices_plain.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

constexpr uint32_t kPoison = 0xDEADF00D;
constexpr VkDeviceSize kMargin = 16384;  // bytes on both sides of the range
constexpr VkDeviceSize kBytes = (VkDeviceSize{6} << 30) + 20;
constexpr uint32_t kBase = 0x48000000;  // a word beyond 4 GiB
constexpr uint32_t kInvocations = 256;

struct Push {
    uint32_t base = kBase;
    uint32_t width = 40;
    uint32_t words_low = static_cast<uint32_t>(kBytes / 4);
    uint32_t words_high = static_cast<uint32_t>(kBytes / 4 >> 32);
};

class KernelsIndexingTest : public VulkanTest {
  protected:
    void SetUp() override {
        api_version_ = VK_API_VERSION_1_4;
        robust_ = true;
        core_features_.shaderInt64 = VK_TRUE;
        more_extensions_ = {VK_EXT_SHADER_64BIT_INDEXING_EXTENSION_NAME};
        more_features_ = &indexing_;
        VulkanTest::SetUp();
    }

    // The words are null if there is no memory for it.
    TestBuffer MakeLarge() {
        TestBuffer buffer{.offset = kMargin, .size = kBytes};
        const VkBufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                      .size = kBytes + 2 * kMargin,
                                      .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
        EXPECT_VK(vkCreateBuffer(device_, &info, nullptr, &buffer.handle));
        AtEnd([this, buffer] { vkDestroyBuffer(device_, buffer.handle, nullptr); });
        VkMemoryRequirements needs;
        vkGetBufferMemoryRequirements(device_, buffer.handle, &needs);
        const VkMemoryAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                            .allocationSize = needs.size};
        VkPhysicalDeviceMaintenance4Properties limits{
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
        VkPhysicalDeviceProperties2 properties{
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &limits};
        vkGetPhysicalDeviceProperties2(physical_, &properties);
        if (limits.maxBufferSize < info.size ||
            vkAllocateMemory(device_, &allocate, nullptr, &buffer.memory) != VK_SUCCESS) {
            return buffer;
        }
        AtEnd([this, buffer] { vkFreeMemory(device_, buffer.memory, nullptr); });
        EXPECT_VK(vkBindBufferMemory(device_, buffer.handle, buffer.memory, 0));
        void* mapped = nullptr;
        EXPECT_VK(vkMapMemory(device_, buffer.memory, 0, VK_WHOLE_SIZE, 0, &mapped));
        auto* bytes = static_cast<std::byte*>(mapped);
        buffer.words = reinterpret_cast<uint32_t*>(bytes + kMargin);
        std::fill_n(reinterpret_cast<uint32_t*>(bytes), kMargin / 4, kPoison);
        std::fill_n(buffer.words + kBytes / 4, kMargin / 4, kPoison);
        return buffer;
    }

    void Check(std::span<const uint32_t> spirv, uint64_t length, bool has_high);

    VkPhysicalDeviceMaintenance5Features maintenance5_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_5_FEATURES,
        .maintenance5 = VK_TRUE};
    VkPhysicalDevice8BitStorageFeatures storage8_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
        .pNext = &maintenance5_,
        .storageBuffer8BitAccess = VK_TRUE};
    VkPhysicalDeviceShader64BitIndexingFeaturesEXT indexing_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_64_BIT_INDEXING_FEATURES_EXT,
        .pNext = &storage8_,
        .shader64BitIndexing = VK_TRUE};
};

void KernelsIndexingTest::Check(std::span<const uint32_t> spirv, uint64_t length, bool has_high) {
    const TestBuffer large = MakeLarge();
    if (!large.words) {
        GTEST_SKIP() << "There is no memory for a buffer of 6 GiB.";
    }
    uint32_t* base = large.words + kBase;
    const auto far = [](uint32_t i) { return uint64_t{i % 11} * 150000000 + i % 5; };
    for (uint32_t k = 0; k < 4096; ++k) {
        base[k] = k * 7 + 1;
    }
    for (uint32_t i = 0; i < kInvocations; ++i) {
        large.words[far(i)] = 9000 + i % 11 * 16 + i % 5;
    }
    const TestBuffer result = MakeBuffer(2050);
    const std::array buffers = {large, result};
    const TestPipeline pipeline = MakePipeline(spirv, buffers);
    VkCommandBuffer commands = Begin();
    Bind(commands, pipeline);
    const Push push;
    vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(push),
                       &push);
    vkCmdDispatch(commands, kInvocations / 64, 1, 1);
    Barrier(commands);
    Run(commands);

    const uint32_t* r = result.words;
    std::array<std::array<bool, 64>, 4> olds = {};
    for (uint32_t i = 0; i < kInvocations; ++i) {
        SCOPED_TRACE(i);
        const auto value = [](uint32_t k) { return k * 7 + 1; };
        const uint32_t run = 1024 + 4 * i;
        ASSERT_EQ(r[i], value(i));
        ASSERT_EQ(r[256 + i], value(run) + value(run + 1) + value(run + 2));
        ASSERT_EQ(r[512 + i], value((i >> 3) * 40 + (i & 7)));
        ASSERT_EQ(r[768 + i], value(4 * i + 2));
        ASSERT_EQ(r[1024 + i], 9000 + i % 11 * 16 + i % 5);
        ASSERT_EQ(r[1280 + i], (9000 + i % 11 * 16 + i % 5) & 0xff);
        ASSERT_EQ(r[1536 + i], 0u);
        ASSERT_EQ(base[4096 + i], 3 * value(i));
        ASSERT_EQ(reinterpret_cast<const uint8_t*>(base + 8192)[i], i);
        ASSERT_LT(r[1792 + i], 64u);
        olds[i & 3][r[1792 + i]] = true;
    }
    for (uint32_t k = 0; k < 4; ++k) {
        EXPECT_EQ(base[16384 + k], 64u);
        EXPECT_EQ(std::count(olds[k].begin(), olds[k].end(), true), 64);
    }
    EXPECT_EQ(base[16388], 255u * 128);
    EXPECT_EQ(r[2048], static_cast<uint32_t>(length));
    EXPECT_EQ(r[2049], has_high ? static_cast<uint32_t>(length >> 32) : 0u);
    for (VkDeviceSize k = 0; k < kMargin / 4; ++k) {
        ASSERT_EQ(large.words[kBytes / 4 + k], kPoison) << k;
        ASSERT_EQ(*(large.words - 1 - k), kPoison) << k;
    }
}

TEST_F(KernelsIndexingTest, TheModuleAsks) {
    Check(spirv::kWideIndicesMode, kBytes / 4, /*has_high=*/true);
}

TEST_F(KernelsIndexingTest, ThePipelineAsks) {
    const VkPipelineCreateFlags2CreateInfo flags{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CREATE_FLAGS_2_CREATE_INFO,
        .flags =
            VK_PIPELINE_CREATE_2_64_BIT_INDEXING_BIT_EXT | VK_PIPELINE_CREATE_2_DISPATCH_BASE_BIT};
    pipeline_chain_ = &flags;
    Check(spirv::kWideIndicesPlain, kBytes / 4, /*has_high=*/false);
}

}  // namespace
}  // namespace fornax::test

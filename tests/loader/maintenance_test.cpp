// What VK_KHR_maintenance7 to 10 bring to compute.
#include <algorithm>
#include <array>
#include <bit>
#include <random>

#include "tests/loader/shaders/wide_bits.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

class MaintenanceTest : public VulkanTest {
  protected:
    void SetUp() override {
        api_version_ = VK_API_VERSION_1_4;
        core_features_.shaderInt16 = VK_TRUE;
        core_features_.shaderInt64 = VK_TRUE;
        more_extensions_ = {
            VK_KHR_MAINTENANCE_7_EXTENSION_NAME, VK_KHR_MAINTENANCE_8_EXTENSION_NAME,
            VK_KHR_MAINTENANCE_9_EXTENSION_NAME, VK_KHR_MAINTENANCE_10_EXTENSION_NAME};
        more_features_ = &maintenance7_;
        VulkanTest::SetUp();
    }

    VkPhysicalDeviceShaderFloat16Int8Features int8_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
        .shaderInt8 = VK_TRUE};
    VkPhysicalDeviceMaintenance10FeaturesKHR maintenance10_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_10_FEATURES_KHR,
        .pNext = &int8_,
        .maintenance10 = VK_TRUE};
    VkPhysicalDeviceMaintenance9FeaturesKHR maintenance9_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_9_FEATURES_KHR,
        .pNext = &maintenance10_,
        .maintenance9 = VK_TRUE};
    VkPhysicalDeviceMaintenance8FeaturesKHR maintenance8_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_8_FEATURES_KHR,
        .pNext = &maintenance9_,
        .maintenance8 = VK_TRUE};
    VkPhysicalDeviceMaintenance7FeaturesKHR maintenance7_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_7_FEATURES_KHR,
        .pNext = &maintenance8_,
        .maintenance7 = VK_TRUE};
};

// Chapter "Required Limits": the totals are at least those of a set.
TEST_F(MaintenanceTest, TotalsOfDynamicBuffers) {
    VkPhysicalDeviceLayeredApiPropertiesListKHR layers{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_LAYERED_API_PROPERTIES_LIST_KHR,
        .layeredApiCount = 7};
    VkPhysicalDeviceMaintenance7PropertiesKHR totals{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_7_PROPERTIES_KHR, .pNext = &layers};
    VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                           .pNext = &totals};
    vkGetPhysicalDeviceProperties2(physical_, &properties);
    const VkPhysicalDeviceLimits& limits = properties.properties.limits;
    EXPECT_GE(totals.maxDescriptorSetTotalUniformBuffersDynamic,
              limits.maxDescriptorSetUniformBuffersDynamic);
    EXPECT_GE(totals.maxDescriptorSetTotalStorageBuffersDynamic,
              limits.maxDescriptorSetStorageBuffersDynamic);
    EXPECT_GE(totals.maxDescriptorSetTotalBuffersDynamic,
              limits.maxDescriptorSetUniformBuffersDynamic +
                  limits.maxDescriptorSetStorageBuffersDynamic);
    EXPECT_EQ(layers.layeredApiCount, 0u);
}

// Nothing is ever handed from one family to another.
TEST_F(MaintenanceTest, FamiliesShareImages) {
    uint32_t count = 0;
    vkGetPhysicalDeviceQueueFamilyProperties2(physical_, &count, nullptr);
    std::vector<VkQueueFamilyOwnershipTransferPropertiesKHR> ownership(
        count, {.sType = VK_STRUCTURE_TYPE_QUEUE_FAMILY_OWNERSHIP_TRANSFER_PROPERTIES_KHR});
    std::vector<VkQueueFamilyProperties2> families(count);
    for (uint32_t i = 0; i < count; ++i) {
        families[i] = {.sType = VK_STRUCTURE_TYPE_QUEUE_FAMILY_PROPERTIES_2,
                       .pNext = &ownership[i]};
    }
    vkGetPhysicalDeviceQueueFamilyProperties2(physical_, &count, families.data());
    for (const auto& family : ownership) {
        EXPECT_EQ(family.optimalImageTransferToQueueFamilies, ~0u);
    }
}

uint64_t Reverse(uint64_t value, int bits) {
    uint64_t reversed = 0;
    for (int i = 0; i < bits; ++i) {
        reversed |= (value >> i & 1) << (bits - 1 - i);
    }
    return reversed;
}
uint64_t Extract(uint64_t value, int offset, int count) {
    return count == 0 ? 0 : value >> offset & ~uint64_t{0} >> (64 - count);
}
uint64_t SignExtract(uint64_t value, int offset, int count, int bits) {
    if (count == 0) {
        return 0;
    }
    const auto field = static_cast<int64_t>(Extract(value, offset, count) << (64 - count));
    return Extract(static_cast<uint64_t>(field >> (64 - count)), 0, bits);
}
uint64_t Insert(uint64_t base, uint64_t inserted, int offset, int count) {
    const uint64_t mask = ((uint64_t{1} << count) - 1) << offset;
    return (base & ~mask) | (inserted << offset & mask);
}

// maintenance9: "any integer bit width".
TEST_F(MaintenanceTest, OperationsOnBitsOfAnyWidth) {
    constexpr uint32_t kCount = 64;
    const TestBuffer in = MakeBuffer(kCount * 4);
    const TestBuffer out = MakeBuffer(kCount * 32);
    std::mt19937_64 random(9);
    for (uint32_t i = 0; i < kCount * 2; ++i) {
        const uint64_t value = i % 7 == 0 ? ~uint64_t{0} : random();
        std::memcpy(in.words + i * 2, &value, sizeof(value));
    }
    std::array buffers = {in, out};
    Run(MakePipeline(spirv::kWideBits, buffers), kCount / 32);
    for (uint32_t i = 0; i < kCount; ++i) {
        uint64_t operands[2];
        std::memcpy(operands, in.words + i * 4, sizeof(operands));
        const auto [a, b] = operands;
        const uint64_t a16 = a & 0xffff;
        const uint64_t a8 = a & 0xff;
        const uint64_t expected[] = {Insert(a, b, 20, 30),
                                     SignExtract(a, 13, 41, 64),
                                     Extract(a, 13, 41),
                                     Reverse(a, 64),
                                     static_cast<uint64_t>(std::popcount(a)),
                                     Insert(a16, b & 0xffff, 3, 9),
                                     SignExtract(a16, 5, 7, 16),
                                     Reverse(a16, 16),
                                     static_cast<uint64_t>(std::popcount(a8)),
                                     Extract(a8, 2, 5),
                                     Reverse(a8, 8)};
        for (uint32_t k = 0; k < std::size(expected); ++k) {
            uint64_t result = 0;
            std::memcpy(&result, out.words + (i * 16 + k) * 2, sizeof(result));
            ASSERT_EQ(result, expected[k]) << "invocation " << i << ", result " << k;
        }
    }
}

// maintenance9: queries that need no reset; maintenance7: narrow results are the low bits.
TEST_F(MaintenanceTest, QueriesAreMadeReset) {
    const VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                     .flags = VK_QUERY_POOL_CREATE_RESET_BIT_KHR,
                                     .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                     .queryCount = 4};
    VkQueryPool pool = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateQueryPool(device_, &info, nullptr, &pool));
    AtEnd([this, pool] { vkDestroyQueryPool(device_, pool, nullptr); });
    uint64_t wide[8] = {};
    EXPECT_EQ(vkGetQueryPoolResults(device_, pool, 0, 4, sizeof(wide), wide, 16,
                                    VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT),
              VK_NOT_READY);
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(wide[i * 2 + 1], 0u) << "available without a reset";
    }
    VkCommandBuffer commands = Begin();
    vkCmdWriteTimestamp2(commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, pool, 1);
    Run(commands);
    uint32_t narrow = 0;
    EXPECT_VK(vkGetQueryPoolResults(device_, pool, 1, 1, sizeof(narrow), &narrow, 4, 0));
    EXPECT_VK(
        vkGetQueryPoolResults(device_, pool, 1, 1, sizeof(wide), wide, 8, VK_QUERY_RESULT_64_BIT));
    EXPECT_EQ(narrow, static_cast<uint32_t>(wide[0]));
}

// maintenance9: an event whose dependency is said where it is waited for.
TEST_F(MaintenanceTest, EventsWithoutADependency) {
    const VkEventCreateInfo info{.sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};
    VkEvent event = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateEvent(device_, &info, nullptr, &event));
    AtEnd([this, event] { vkDestroyEvent(device_, event, nullptr); });
    const TestBuffer buffer = MakeBuffer(16);
    const TestBuffer copy = MakeBuffer(16);
    VkMemoryBarrier2 barrier{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                             .srcStageMask = VK_PIPELINE_STAGE_2_CLEAR_BIT};
    VkDependencyInfo dependency{.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                .dependencyFlags = VK_DEPENDENCY_ASYMMETRIC_EVENT_BIT_KHR,
                                .memoryBarrierCount = 1,
                                .pMemoryBarriers = &barrier};
    VkCommandBuffer commands = Begin();
    vkCmdFillBuffer(commands, buffer.handle, buffer.offset, buffer.size, 42);
    vkCmdSetEvent2(commands, event, &dependency);
    barrier.srcAccessMask = VK_ACCESS_2_TRANSFER_WRITE_BIT;
    barrier.dstStageMask = VK_PIPELINE_STAGE_2_COPY_BIT;
    barrier.dstAccessMask = VK_ACCESS_2_TRANSFER_READ_BIT;
    vkCmdWaitEvents2(commands, 1, &event, &dependency);
    const VkBufferCopy region = {buffer.offset, copy.offset, buffer.size};
    vkCmdCopyBuffer(commands, buffer.handle, copy.handle, 1, &region);
    Barrier(commands);
    Run(commands);
    EXPECT_EQ(std::ranges::count(copy.span(), 42u), 16);
}

// maintenance9: a device that only fills caches.
TEST_F(MaintenanceTest, DevicesWithoutQueuesMakePipelines) {
    const char* const extension = VK_KHR_MAINTENANCE_9_EXTENSION_NAME;
    VkPhysicalDeviceMaintenance9FeaturesKHR feature{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_9_FEATURES_KHR,
        .maintenance9 = VK_TRUE};
    const VkDeviceCreateInfo info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                  .pNext = &feature,
                                  .enabledExtensionCount = 1,
                                  .ppEnabledExtensionNames = &extension};
    VkDevice device = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateDevice(physical_, &info, nullptr, &device));
    // Its commands may differ from those of the fixture's device.
    const auto get = [&](const char* name) { return vkGetDeviceProcAddr(device, name); };
    const VkPipelineCacheCreateInfo cache_info{.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    VkPipelineCache cache = VK_NULL_HANDLE;
    EXPECT_VK(reinterpret_cast<PFN_vkCreatePipelineCache>(get("vkCreatePipelineCache"))(
        device, &cache_info, nullptr, &cache));
    reinterpret_cast<PFN_vkDestroyPipelineCache>(get("vkDestroyPipelineCache"))(device, cache,
                                                                                nullptr);
    EXPECT_VK(reinterpret_cast<PFN_vkDeviceWaitIdle>(get("vkDeviceWaitIdle"))(device));
    reinterpret_cast<PFN_vkDestroyDevice>(get("vkDestroyDevice"))(device, nullptr);
}

}  // namespace
}  // namespace fornax::test

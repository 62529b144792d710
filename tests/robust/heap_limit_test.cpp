// A heap that is full. Outcome: whatever allocates from it gives VK_ERROR_OUT_OF_DEVICE_MEMORY and
// leaves nothing behind; what was there goes on; freed memory can be had again.
#include <cstdlib>

#include <gtest/gtest.h>

#include "tools/soak/client.h"
#include "tools/soak/shaders/count.spv.h"

namespace fornax::test {

using soak::Client;
using soak::ClientBuffer;
using soak::ClientPipeline;
namespace {

constexpr VkDeviceSize kHeapBytes = 16 << 20;

class HeapLimitTest : public testing::Test {
  protected:
    void SetUp() override { setenv("FORNAX_HEAP_BYTES", std::to_string(kHeapBytes).c_str(), 1); }
    void TearDown() override { unsetenv("FORNAX_HEAP_BYTES"); }

    static VkDeviceSize Used(const Client& client) {
        VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
        VkPhysicalDeviceMemoryProperties2 properties{
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
        vkGetPhysicalDeviceMemoryProperties2(client.physical, &properties);
        EXPECT_EQ(properties.memoryProperties.memoryHeaps[0].size, kHeapBytes);
        return budget.heapUsage[0];
    }

    static VkResult Allocate(const Client& client, VkDeviceSize size, VkDeviceMemory* memory) {
        const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                        .allocationSize = size};
        return vkAllocateMemory(client.device, &info, nullptr, memory);
    }

    // Takes what is left, to the last 64 bytes.
    static std::vector<VkDeviceMemory> Fill(const Client& client) {
        std::vector<VkDeviceMemory> taken;
        for (VkDeviceSize size = kHeapBytes; size >= 64;) {
            VkDeviceMemory memory;
            const VkResult result = Allocate(client, size, &memory);
            if (result == VK_SUCCESS) {
                taken.push_back(memory);
            } else {
                EXPECT_EQ(result, VK_ERROR_OUT_OF_DEVICE_MEMORY);
                size /= 2;
            }
        }
        return taken;
    }
};

TEST_F(HeapLimitTest, EveryCommandThatAllocates) {
    Client client;
    ASSERT_TRUE(client.valid()) << client.error();
    const VkDevice device = client.device;
    const ClientPipeline pipeline = client.MakePipeline(spirv::kCount);
    const ClientBuffer buffer = client.MakeBuffer(256);
    const VkDeviceSize used_before = Used(client);
    const std::vector<VkDeviceMemory> taken = Fill(client);
    const VkDeviceSize used_full = Used(client);
    EXPECT_GT(used_full, kHeapBytes - 4096);

    for (int round = 0; round < 100; ++round) {
        VkDeviceMemory memory;
        EXPECT_EQ(Allocate(client, 1 << 20, &memory), VK_ERROR_OUT_OF_DEVICE_MEMORY);
        // More than the heap's size.
        EXPECT_EQ(Allocate(client, VkDeviceSize{1} << 40, &memory), VK_ERROR_OUT_OF_DEVICE_MEMORY);

        const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 4096};
        const VkDescriptorPoolCreateInfo pool{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
            .maxSets = 4096,
            .poolSizeCount = 1,
            .pPoolSizes = &size};
        VkDescriptorPool descriptor_pool;
        EXPECT_EQ(vkCreateDescriptorPool(device, &pool, nullptr, &descriptor_pool),
                  VK_ERROR_OUT_OF_DEVICE_MEMORY);

        const VkQueryPoolCreateInfo queries{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                            .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                            .queryCount = 4096};
        VkQueryPool query_pool;
        EXPECT_EQ(vkCreateQueryPool(device, &queries, nullptr, &query_pool),
                  VK_ERROR_OUT_OF_DEVICE_MEMORY);

        const VkEventCreateInfo event{.sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};
        VkEvent made;
        EXPECT_EQ(vkCreateEvent(device, &event, nullptr, &made), VK_ERROR_OUT_OF_DEVICE_MEMORY);

        VkResult result;
        client.MakeBuffer(1 << 20, &result);
        EXPECT_EQ(result, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    }
    EXPECT_EQ(Used(client), used_full) << "A failed command left memory behind.";

    // What needs no memory of the device still works, recording, waiting and running included.
    std::fill_n(buffer.words, buffer.count, 0u);
    const uint32_t addend = 2;
    EXPECT_EQ(client.Run(pipeline, buffer, {&addend, 1}, 4), VK_SUCCESS);
    EXPECT_EQ(buffer.words[255], 2u * 256);

    for (VkDeviceMemory memory : taken) {
        vkFreeMemory(device, memory, nullptr);
    }
    EXPECT_EQ(Used(client), used_before);
    VkDeviceMemory again;
    EXPECT_EQ(Allocate(client, kHeapBytes / 2, &again), VK_SUCCESS);
    vkFreeMemory(device, again, nullptr);
    client.Free(buffer);
    client.Free(pipeline);
}

// Each device has the heap for itself: one that fills its own takes nothing from another.
TEST_F(HeapLimitTest, DevicesDoNotStarveEachOther) {
    Client greedy;
    Client modest;
    ASSERT_TRUE(greedy.valid() && modest.valid());
    const std::vector<VkDeviceMemory> taken = Fill(greedy);
    const ClientBuffer buffer = modest.MakeBuffer(1024);
    EXPECT_TRUE(modest.valid()) << modest.error();
    modest.Free(buffer);
    for (VkDeviceMemory memory : taken) {
        vkFreeMemory(greedy.device, memory, nullptr);
    }
}

}  // namespace
}  // namespace fornax::test
